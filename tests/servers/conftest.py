"""Real servers, for `pytest -m servers`; without that mark nothing here runs."""

import importlib
import itertools
import os
from pathlib import Path

import pytest

HERE = Path(__file__).parent

OTHERS_WARNINGS = (
    "ignore:The asyn(core|chat) module is deprecated:DeprecationWarning",  # pyftpdlib
    "ignore:Sending a large body directly:ResourceWarning",  # gcsfs
)
COUNTER = itertools.count()


@pytest.hookimpl(tryfirst=True)  # before pytest looks at the marks
def pytest_collection_modifyitems(items):
    for item in (item for item in items if HERE in item.path.parents):
        item.add_marker(pytest.mark.servers)
        item.add_marker(pytest.mark.timeout(600, func_only=True))  # fixtures install servers
        for warning in OTHERS_WARNINGS:
            item.add_marker(pytest.mark.filterwarnings(warning))


@pytest.fixture(scope="session")
def folders(tmp_path_factory):
    return tmp_path_factory


@pytest.fixture(scope="session")
def versitygw(folders):
    with importlib.import_module("tests.support.real_servers").versitygw(
        folders.mktemp("versitygw"), "key-of-tests", "secret-of-tests"
    ) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def bos(folders):
    """An S3 server in a region of BOS: the service itself cannot be started here."""
    with importlib.import_module("tests.support.real_servers").versitygw(
        folders.mktemp("bos"), "key-of-tests", "secret-of-tests", "gz"
    ) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def minio(folders):
    with importlib.import_module("tests.support.real_servers").minio(
        folders.mktemp("minio"), "key-of-tests", "secret-of-tests"
    ) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def azurite(folders):
    with importlib.import_module("tests.support.real_servers").azurite(folders.mktemp("azurite")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def fake_gcs(folders):
    with importlib.import_module("tests.support.real_servers").fake_gcs(folders.mktemp("gcs")) as endpoint:
        yield endpoint


@pytest.fixture(scope="session")
def ftp(folders):
    with importlib.import_module("tests.support.ftp_server").serving(folders.mktemp("ftp")) as address:
        yield address


@pytest.fixture(scope="session")
def ftp_without_mlsd(folders):
    serving = importlib.import_module("tests.support.ftp_server").serving
    with serving(folders.mktemp("ftp"), (), ("MLSD", "MLST")) as address:
        yield address


@pytest.fixture(scope="session")
def vsftpd(folders):
    serving = importlib.import_module("tests.support.vsftpd").vsftpd
    with serving(folders.mktemp("vsftpd"), folders.mktemp("server")) as address:
        yield address


def vsftpd_with_tls(folders, *, implicit):
    """The address, and the certificate to trust."""
    server, rclone = (
        importlib.import_module("tests.support.vsftpd"),
        importlib.import_module("tests.support.rclone"),
    )
    folder = folders.mktemp("server")
    certificate, key = rclone.certificate_for_loopback(folder)
    options = server.tls_options(certificate, key, implicit=implicit)
    with server.vsftpd(folders.mktemp("vsftpd"), folder, *options) as address:
        yield address, certificate.read_text()


@pytest.fixture(scope="session")
def vsftpd_explicit(folders):
    yield from vsftpd_with_tls(folders, implicit=False)


@pytest.fixture(scope="session")
def vsftpd_implicit(folders):
    yield from vsftpd_with_tls(folders, implicit=True)


@pytest.fixture(scope="session")
def sftp_files(folders):
    return folders.mktemp("sftp-files")


@pytest.fixture(scope="session")
def sftp(folders, sftp_files):
    with importlib.import_module("tests.support.openssh").sshd(sftp_files, folders.mktemp("sshd")) as server:
        yield server


@pytest.fixture(scope="session")
def hadoop(folders):
    with importlib.import_module("tests.support.hadoop").hadoop(folders.mktemp("hadoop")) as found:
        yield found


@pytest.fixture
def fresh():
    return f"run {os.getpid()}/n+{next(COUNTER)} %20"

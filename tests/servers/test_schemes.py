"""Each scheme of the engines opens, lists and reads a file on a real server, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path

import pytest

from podferry.contract.uri import Uri, parse_uri
from podferry.storage.engines import BUILT_IN
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from tests.support.real_servers import AZURITE_ACCOUNT, AZURITE_KEY

SCHEMES = [
    scheme.names[0]
    for engine in BUILT_IN
    for scheme in engine.schemes
    if scheme.tested_on and scheme.names[0] not in {"memory", "pvc"}  # a claim needs a cluster: tests/e2e
]
NAME = "o d#d?/x#y?z %20&a+b"
LOGIN = {"USERNAME": "user", "PASSWORD": "password"}
HADOOP = ("hdfs", "webhdfs")
BUCKETS = {
    "s3": ("versitygw", {"AWS_ACCESS_KEY_ID": "key-of-tests", "AWS_SECRET_ACCESS_KEY": "secret-of-tests"}),
    "bos": (
        "bos",
        {
            "BOS_ACCESS_KEY_ID": "key-of-tests",
            "BOS_SECRET_ACCESS_KEY": "secret-of-tests",
            "BOS_REGION": "gz",
        },
    ),
    "az": (
        "azurite",
        {"AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT, "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY},
    ),
    "gs": ("fake_gcs", {"GOOGLE_SKIP_SIGNATURE": "true"}),
}


class Site:
    """Starts the server of a scheme.

    Attributes:
        variables: Of the environment that reaches it.
        endpoint: Of the service, or None.
    """

    def __init__(self, request: pytest.FixtureRequest, folder: Path, stack: ExitStack) -> None:
        self.variables: dict[str, str] = {}
        self.endpoint: str | None = None
        self._request, self._folder, self._stack = request, folder, stack

    def uri(self, scheme: str) -> Uri:
        """A directory at the server that has the file."""
        if scheme in BUCKETS:
            fixture, self.variables = BUCKETS[scheme]
            self.endpoint = self._request.getfixturevalue(fixture)
            return Uri(scheme, "bucket", "a set")
        own = {"oss": self._oss, "smb": self._share, "sftp": self._sftp}
        if scheme in own:
            return own[scheme]()
        if scheme in HADOOP:
            return self._hdfs(scheme)
        if scheme in {"ftp", "ftps"}:
            return self._ftp(scheme)
        files = self._folder / "files"
        if scheme == "file":
            return parse_uri(str(files / "a set"))
        path = "tests/set/a set" if scheme == "hf" else "a set"
        return Uri(scheme, self._stack.enter_context(self._server(scheme, files)), path)

    def _oss(self) -> Uri:
        served = self._stack.enter_context(import_module("tests.support.oss.server").serving())
        self.endpoint = served.endpoint
        self.variables = {"akId": "key-of-tests", "akSecret": "secret-of-tests", "OSS_REGION": "cn-hangzhou"}
        return Uri("oss", "bucket", "a set")

    def _hdfs(self, scheme: str) -> Uri:
        found = self._request.getfixturevalue("hadoop")
        return Uri(scheme, found.address if scheme == "hdfs" else found.web, f"{self._folder.name}/a set")

    def _sftp(self) -> Uri:
        serving = import_module("tests.support.openssh").sshd(self._folder / "files", self._folder / "server")
        server = self._stack.enter_context(serving)
        self.variables = server.credentials
        return Uri("sftp", server.address, "srv/files/a set")

    def _ftp(self, scheme: str) -> Uri:
        server, folder = import_module("tests.support.vsftpd"), self._folder / "server"
        certificate, key = import_module("tests.support.rclone").certificate_for_loopback(folder)
        options = server.tls_options(certificate, key) if scheme == "ftps" else ()
        self.variables = {f"FTP_{name}": value for name, value in LOGIN.items()}
        self.variables |= {"REQUESTS_CA_BUNDLE": str(certificate)}
        serving = server.vsftpd(self._folder / "files", folder, *options)
        return Uri(scheme, self._stack.enter_context(serving), "a set")

    def _share(self) -> Uri:
        served = import_module("tests.support.samba")
        self.variables = served.KEYS
        for name in ("share", "samba"):
            (self._folder / name).mkdir()
        server = self._stack.enter_context(served.samba(self._folder / "share", self._folder / "samba"))
        return Uri("smb", server.address, f"{served.SHARE}/a set")

    def _server(self, scheme: str, files: Path):
        rclone, log = import_module("tests.support.rclone"), self._folder / "server/log"
        if scheme == "hf":
            return self._hub(files / "a set")
        if scheme == "webdav":
            dav = import_module("tests.support.webdav_servers")
            self.variables = dav.KEYS
            return dav.rclone_webdav(files, log.parent)
        if scheme == "http":
            return rclone.rclone(files, "http", log)
        certificate, key = rclone.certificate_for_loopback(log.parent)
        self.variables = {"SSL_CERT_FILE": str(certificate)}
        return rclone.rclone(files, "http", log, "--cert", str(certificate), "--key", str(key))

    @contextmanager
    def _hub(self, files: Path):
        hub = import_module("tests.support.hub_server")
        with hub.serving({"datasets/tests/set": hub.repository_of(files.parent)}) as server:
            self.variables = {"HF_ENDPOINT": server.url}
            yield "datasets"


@pytest.fixture
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    (tmp_path / "server").mkdir()
    file = tmp_path / "files/a set" / NAME
    file.parent.mkdir(parents=True)
    file.write_bytes(b"0123456789")
    with ExitStack() as stack:
        yield Site(request, tmp_path, stack)


async def put(uri: Uri, site: Site) -> None:
    store = open_store(uri, StoreConfig(endpoint=site.endpoint, credentials=site.variables))
    await store.write(NAME, b"0123456789")
    await store.close()


def called(*words: str, variables: dict[str, str]) -> str:
    """What `podferry` prints; a failure or a hang fails the test."""
    command = [sys.executable, "-m", "podferry.cli.main", *words]
    environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **variables}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("scheme", SCHEMES)
async def test_a_file_is_listed_and_read(scheme: str, site: Site, tmp_path: Path) -> None:
    uri = site.uri(scheme)
    if scheme in {*BUCKETS, *HADOOP, "oss", "smb"}:  # a name of the file is none for every server
        await put(uri, site)
    endpoint = ["--endpoint", site.endpoint] if site.endpoint else []
    assert NAME in called("dataset", "ls", str(uri), *endpoint, variables=site.variables)
    called("dataset", "get", str(uri), str(tmp_path / "got"), *endpoint, variables=site.variables)
    assert (tmp_path / "got" / NAME).read_bytes() == b"0123456789"

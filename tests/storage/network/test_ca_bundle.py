"""Which certificates are trusted in addition to the system's."""

import ssl

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.network.ca_bundle import MAX_BUNDLE_BYTES, read_ca_bundle
from tests.support.private_ca import PrivateCa

C = "CERTIFICATE-----"


def test_bundles_add_up_without_text_between_them_and_are_named(private_ca, tmp_path):
    other = PrivateCa()
    (tmp_path / "one.pem").write_text(f"# a comment: ü\n{private_ca.pem}")
    directory = tmp_path / "more"
    directory.mkdir()
    (directory / "two.crt").write_text(other.pem)
    (directory / "README").write_text("none here")
    environ = {"AWS_CA_BUNDLE": str(tmp_path / "one.pem"), "CURL_CA_BUNDLE": str(directory)}
    found = read_ca_bundle(environ, {"ca.crt": private_ca.pem})
    assert found.pem == private_ca.pem + other.pem
    assert found.names == ("the key 'ca.crt' of the Secret", "AWS_CA_BUNDLE", "CURL_CA_BUNDLE")
    assert repr(found).startswith("CaBundle(2 certificates of")


def test_nothing_is_configured():
    assert read_ca_bundle({}, {}).pem == ""


def test_paths_without_a_certificate_are_described(tmp_path):
    directory, empty, notes = tmp_path / "directory", tmp_path / "empty.pem", tmp_path / "notes"
    directory.mkdir()
    (directory / "below").mkdir()
    (directory / "README").write_text("none here")
    (directory / "large").write_bytes(bytes(MAX_BUNDLE_BYTES + 1))
    empty.touch()
    notes.write_text("none here")
    for path, found in (
        (directory, "a directory with 2 files; 9 characters"),
        (empty, "an empty file; 0 characters"),
        (notes, "a file; 9 characters"),
    ):
        with pytest.raises(InvalidSpec, match=rf"AWS_CA_BUNDLE cannot be read: .*'{path}' is {found}"):
            read_ca_bundle({"AWS_CA_BUNDLE": str(path)}, {})


def test_the_systems_own_file_is_not_read_again(private_ca, tmp_path, monkeypatch):
    path = tmp_path / "system.pem"
    path.write_text(private_ca.pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    assert ssl.get_default_verify_paths().cafile == str(path)
    link = tmp_path / "link.pem"
    link.symlink_to(path)
    assert read_ca_bundle({"REQUESTS_CA_BUNDLE": str(link)}, {}).pem == ""


@pytest.mark.parametrize(
    ("environ", "secret", "words"),
    [
        (
            {"AWS_CA_BUNDLE": "/nonexistent/ca.pem"},
            {},
            "AWS_CA_BUNDLE cannot be read ('/nonexistent/ca.pem': No",
        ),
        (
            {"AWS_CA_BUNDLE": "/etc/passwd"},
            {},
            "AWS_CA_BUNDLE cannot be read: there is no certificate ('/etc/p",
        ),
        ({"SSL_CERT_FILE": "/nonexistent/x"}, {}, "SSL_CERT_FILE names a path that does not exist"),
        (
            {"SSL_CERT_DIR": "/nonexistent/x:/nonexistent/y"},
            {},
            "SSL_CERT_DIR names a path that does not exist",
        ),
        (
            {},
            {"ca": f"-----BEGIN {C}\nAAAA\n-----END {C}"},
            "'ca' of the Secret cannot be read: a certificate",
        ),
        ({}, {"ca": "-----BEGIN PUBLIC KEY-----\nAAAA"}, "'ca' of the Secret cannot be read: there is no"),
    ],
)
def test_what_is_wrong_is_named(environ, secret, words):
    with pytest.raises(InvalidSpec) as caught:
        read_ca_bundle(environ, secret)
    assert words in str(caught.value)

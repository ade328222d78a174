"""Logs in at pyspnego's own server; tests/servers/smb/test_smb.py logs in at Samba's."""

import struct

import pytest
import spnego

from podferry.contract.uri import parse_uri
from podferry.storage.smb.authentication import Authentication
from podferry.storage.smb.nt_status import LoginRefused, TicketRefused
from podferry.storage.smb.options import read_options

CHALLENGE, OTHER = (struct.pack("<8sI48x", b"NTLMSSP", kind) for kind in (2, 9))


def login(user, secret):
    keys = {"SMB_USERNAME": user, "SMB_PASSWORD": secret}
    return Authentication(read_options(parse_uri("smb://nas/share"), keys))


@pytest.fixture
def server(monkeypatch, tmp_path):
    """A server with these accounts."""

    def of(*accounts):
        (tmp_path / "users").write_text("".join(f"{account}\n" for account in accounts))
        monkeypatch.setenv("NTLM_USER_FILE", str(tmp_path / "users"))
        options = spnego.NegotiateOptions.use_ntlm | spnego.NegotiateOptions.session_key
        return spnego.server(protocol="ntlm", options=options)

    return of


def exchanged(client, server):
    token = client.answer(b"hint of a server")
    while not server.complete:
        token = client.answer(server.step(token) or b"")
        if token:
            server.step(token)
    return server


@pytest.mark.parametrize(
    ("user", "password", "account"),
    [
        ("u", "pässword", ":u:pässword"),
        ("LAB\\u", "p", "LAB:u:p"),
        ("u@lab.example", "p", ":u@lab.example:p"),
    ],
)
def test_both_have_the_same_key(server, user, password, account):
    client = login(user, password)
    found = exchanged(client, server(account))
    assert len(client.session_key) == 16
    assert client.session_key == found.session_key
    assert client.answer(b"") == b""


def test_a_wrong_password(server):
    with pytest.raises(spnego.exceptions.SpnegoError):
        exchanged(login("u", "other"), server(":u:p"))


@pytest.mark.parametrize(
    "token",
    [b"", b"\0", b"NTLMSSP\0", b"NTLMSSP\0\3\0\0\0" + bytes(60), CHALLENGE[:40], OTHER, b"`H\6\6+\6"],
)
def test_what_is_no_challenge(token):
    client = login("u", "p")
    client.answer(b"")
    with pytest.raises(LoginRefused):
        client.answer(token)


def test_a_login_that_the_server_ends_too_early_has_no_key():
    client = login("u", "p")
    client.answer(b"")
    with pytest.raises(LoginRefused, match="before it is complete"):
        client.session_key  # noqa: B018


def test_a_ticket_is_negotiated_and_no_password_is_sent(monkeypatch):
    """The library's client is replaced: Kerberos itself is not tested."""
    made = {}
    monkeypatch.setattr("podferry.storage.smb.options.find_spec", lambda name: name)
    monkeypatch.setattr(
        spnego, "client", lambda credential, **given: made.update(given, credential=credential)
    )
    Authentication(read_options(parse_uri("smb://nas/share"), {"KRB5CCNAME": "/cache"}))
    assert made["credential"] == spnego.KerberosCCache("/cache")
    assert (made["protocol"], made["service"], made["hostname"]) == ("negotiate", "cifs", "nas")


def test_a_ticket_that_cannot_be_used_is_named(monkeypatch):
    def failing(*_, **__):
        raise RuntimeError("no such cache")

    monkeypatch.setattr("podferry.storage.smb.options.find_spec", lambda name: name)
    monkeypatch.setattr(spnego, "client", failing)
    with pytest.raises(TicketRefused, match="RuntimeError: no such cache"):
        Authentication(read_options(parse_uri("smb://nas/share"), {"KRB5CCNAME": "/cache"}))

"""Where a share is, and who logs in."""

import pytest

from podferry.contract.errors import CredentialsMissing, InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.smb.options import read_options

KEYS = {"SMB_USERNAME": "u", "SMB_PASSWORD": "p"}


def options(uri="smb://nas/share/path", keys=None):
    return read_options(parse_uri(uri), KEYS if keys is None else keys)


@pytest.mark.parametrize(
    ("uri", "place"),
    [
        ("smb://nas/share/path", ("nas", 445, "share")),
        ("smb://nas.example:4450/share", ("nas.example", 4450, "share")),
        ("smb://[fd00::1]:4450/share", ("fd00::1", 4450, "share")),
        ("smb://[fd00::1]/share", ("fd00::1", 445, "share")),
    ],
)
def test_the_place(uri, place):
    found = options(uri)
    assert (found.host, found.port, found.share) == place


@pytest.mark.parametrize("uri", ["smb://nas", "smb://nas/"])
def test_a_share_is_required(uri):
    with pytest.raises(InvalidSpec, match=r"names no share.*smb://nas/SHARE/path"):
        options(uri)


def test_a_port_that_is_none():
    with pytest.raises(InvalidSpec, match="no valid host and port"):
        options("smb://nas:port/share")


@pytest.mark.parametrize(
    ("keys", "user", "password"),
    [
        (KEYS, "u", "p"),
        ({**KEYS, "SMB_DOMAIN": "LAB"}, "LAB\\u", "p"),
        ({**KEYS, "SMB_USERNAME": "LAB\\u", "SMB_DOMAIN": "OTHER"}, "LAB\\u", "p"),
        ({**KEYS, "SMB_USERNAME": "u@lab.example", "SMB_DOMAIN": "OTHER"}, "u@lab.example", "p"),
        ({"username": "u", "password": "p"}, "u", "p"),
        ({"azurestorageaccountname": "account", "azurestorageaccountkey": "a2V5"}, "account", "a2V5"),
        ({**KEYS, "username": "other"}, "u", "p"),
    ],
)
def test_who_logs_in(keys, user, password):
    found = options(keys=keys)
    assert (found.user, found.password, found.guest, found.encrypt) == (user, password, False, False)


def test_the_user_of_the_uri_comes_first():
    assert options("smb://me@nas/share").user == "me"
    assert options("smb://LAB;me@nas/share").user == "LAB\\me"


@pytest.mark.parametrize(("keys", "missing"), [({}, "user"), ({"SMB_USERNAME": "u"}, "password")])
def test_credentials_that_are_missing_are_named(keys, missing):
    with pytest.raises(CredentialsMissing, match=f"no {missing} for .*SMB_USERNAME and SMB_PASSWORD"):
        options(keys=keys)


def test_a_guest_has_no_account():
    found = options(keys={"SMB_GUEST": "true"})
    assert (found.guest, found.user) == (True, "")
    assert not options(keys={**KEYS, "SMB_GUEST": "true"}).guest


@pytest.mark.parametrize(
    ("installed", "keys", "ticket"),
    [
        (True, {"KRB5CCNAME": "/cache"}, "/cache"),
        (True, {"KRB5CCNAME": "/cache", "SMB_USERNAME": "u"}, "/cache"),
        (True, {"KRB5CCNAME": "/cache", **KEYS}, ""),
        (True, {"KRB5CCNAME": "/cache", "SMB_GUEST": "true"}, ""),
        (False, {"KRB5CCNAME": "/cache", **KEYS}, ""),
    ],
)
def test_a_ticket_of_kerberos(monkeypatch, installed, keys, ticket):
    monkeypatch.setattr("podferry.storage.smb.options.find_spec", lambda name: name if installed else None)
    assert options(keys=keys).ticket == ticket


def test_a_ticket_without_its_library(monkeypatch):
    monkeypatch.setattr("podferry.storage.smb.options.find_spec", lambda _: None)
    with pytest.raises(CredentialsMissing, match=r"read: KRB5CCNAME.*pyspnego\[kerberos\]"):
        options(keys={"KRB5CCNAME": "/cache"})


def test_encryption_on_demand():
    assert options(keys={**KEYS, "SMB_ENCRYPTION": "required"}).encrypt


def test_nothing_secret_is_printed():
    found = options(keys={"SMB_USERNAME": "someone", "SMB_PASSWORD": "secret"})
    assert "secret" not in repr(found)
    assert "someone" not in repr(found)
    assert found.names == ("SMB_USERNAME", "SMB_PASSWORD")

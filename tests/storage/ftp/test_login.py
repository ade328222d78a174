import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.ftp.login import Login, Tls, login_for, names_of_credentials

GIVEN = {"FTP_USERNAME": "ana", "FTP_PASSWORD": "secret"}


def login(uri, **variables):
    return login_for(parse_uri(uri), {**GIVEN, **variables})


@pytest.mark.parametrize(
    ("uri", "address", "tls"),
    [
        ("ftp://host/a", "host:21", Tls.NONE),
        ("ftp://host:990/a", "host:990", Tls.NONE),
        ("ftps://host/a", "host:990", Tls.IMPLICIT),
        ("ftps://host:990/a", "host:990", Tls.IMPLICIT),
        ("ftps://host:21/a", "host:21", Tls.EXPLICIT),
        ("ftps://[fd00::7]:2121/a", "[fd00::7]:2121", Tls.EXPLICIT),
    ],
)
def test_scheme_and_port_say_whether_there_is_tls(uri, address, tls):
    found = login(uri)
    assert (found.address, found.tls, found.user) == (address, tls, "ana")


def test_how_tls_begins_can_be_chosen():
    assert login("ftps://host/a", FTP_TLS="explicit") == Login("host", 21, "ana", "secret", Tls.EXPLICIT)
    assert login("ftps://host:21/a", FTP_TLS="implicit").tls is Tls.IMPLICIT
    with pytest.raises(InvalidSpec, match="FTP_TLS is not valid"):
        login("ftps://host/a", FTP_TLS="yes")


def test_without_credentials_the_user_is_anonymous():
    assert login_for(parse_uri("ftp://host/a"), {}) == Login("host", 21)
    with pytest.raises(InvalidSpec, match="FTP_USERNAME"):
        login_for(parse_uri("ftp://host/a"), {"FTP_PASSWORD": "secret"})


def test_keys_of_kubernetes_secrets_count_if_the_variables_are_not_set():
    keys = {"username": "bo", "password": "other"}
    assert login_for(parse_uri("ftp://host/a"), keys) == Login("host", 21, "bo", "other")
    assert login("ftp://host/a", **keys).user == "ana"
    assert login("ftp://eve@host/a").user == "eve"
    names = names_of_credentials({**keys, **GIVEN, "HOME": "x"})
    assert names == ("FTP_PASSWORD", "FTP_USERNAME", "password", "username")


@pytest.mark.parametrize("host", ["host:0", "host:x", "[fd00::7"])
def test_an_address_that_is_none_is_refused(host):
    with pytest.raises(InvalidSpec, match="no valid host and port"):
        login(f"ftp://{host}/a")


def test_secrets_are_not_printed():
    assert "secret" not in repr(login("ftp://host/a"))

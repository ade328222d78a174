"""What sftp:// and ftp:// share."""

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri
from podferry.storage.credentials.login import (
    Authority,
    authority_of,
    login_names,
    login_values,
    server_address,
)

SECRET_KEYS = {"X_USERNAME": "username", "X_PASSWORD": "password"}


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("sftp://host/a", Authority("", "host", None)),
        ("sftp://bo@host:2222/a", Authority("bo", "host", 2222)),
        ("ftp://[::1]:2121/a", Authority("", "::1", 2121)),
    ],
)
def test_a_uri_names_a_user_a_host_and_a_port(uri, expected):
    assert authority_of(parse_uri(uri)) == expected


@pytest.mark.parametrize("place", ["host:0", "host:65536", "host:x"])
def test_a_port_is_valid(place):
    with pytest.raises(InvalidSpec, match="no valid host and port"):
        authority_of(parse_uri(f"ftp://{place}/a"))


def test_an_ipv6_address_has_brackets():
    assert (server_address("host", 22), server_address("::1", 22)) == ("host:22", "[::1]:22")


def test_a_variable_wins_over_the_key_of_a_secret():
    variables = {"X_USERNAME": "a", "username": "b", "password": "c", "HOME": "d"}
    assert login_values(variables, SECRET_KEYS) == {"X_USERNAME": "a", "X_PASSWORD": "c"}
    assert login_names({**variables, "X_TLS": ""}, "X_", SECRET_KEYS) == (
        "X_TLS",
        "X_USERNAME",
        "password",
        "username",
    )

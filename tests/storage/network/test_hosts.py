"""Names and addresses of hosts."""

import pytest

from podferry.storage.network.hosts import is_host, parse_address


@pytest.mark.parametrize(
    "text", ["s3", "s3.example.com", "s3.example.com.", "a_b", "x--1", "10.0.0.1", "fd00::1", "3com.de"]
)
def test_hosts(text):
    assert is_host(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "bad host",
        "a..b",
        "-a",
        "a-",
        "hä",
        "300.1.1.1",
        "1.2.3",
        "a.0x7f",
        "a/b",
        "a:b",
        "x" * 64,
        "a\n",
    ],
)
def test_what_is_no_host(text):
    assert not is_host(text)


def test_only_addresses_have_an_address():
    assert str(parse_address("10.0.0.1")) == "10.0.0.1"
    assert parse_address("s3") is None

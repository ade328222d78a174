"""Which proxy a request goes through, by the variables that curl and Go read."""

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.network.proxies import EVERYTHING, Proxies, read_proxies

HTTPS = {"HTTPS_PROXY": "http://proxy:3128"}


@pytest.mark.parametrize(
    ("variables", "url", "proxy"),
    [
        ({}, "https://s3", None),
        (HTTPS, "https://s3", "http://proxy:3128"),
        (HTTPS, "http://s3", None),
        ({"HTTP_PROXY": "proxy"}, "http://s3", "http://proxy"),
        ({**HTTPS, "https_proxy": "https://lower:1"}, "https://s3", "https://lower:1"),
        ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": "http://one:1"}, "https://s3", "http://all:1"),
        ({"ALL_PROXY": "http://all:1", "HTTP_PROXY": "http://one:1"}, "http://s3", "http://one:1"),
        ({"https_proxy": " http://u:p@proxy:1/ "}, "https://s3", "http://proxy:1"),
        ({"https_proxy": ""}, "https://s3", None),
    ],
)
def test_the_scheme_chooses_the_variable(variables, url, proxy):
    found = read_proxies(variables).proxy_for(url)
    assert (found and str(found)) == proxy


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("*", "https://s3.example.com", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://S3.Example.com:9000", True),
        (".example.com", "https://s3.example.com", True),
        ("*.example.com", "https://s3.example.com", True),
        ("example.com", "https://badexample.com", False),
        ("other, EXAMPLE.com", "https://s3.example.com", True),
        ("other s3", "https://s3", True),
        ("s3:9000", "https://s3:9000", True),
        ("s3:443", "https://s3", True),
        ("s3:9000", "https://s3", False),
        ("10.0.0.0/8", "https://10.1.2.3:9000", True),
        ("10.0.0.0/8", "https://11.1.2.3", False),
        ("10.1.2.3", "https://10.1.2.3", True),
        ("fd00::/8", "https://[fd00::1]:9000", True),
        ("[fd00::1]:9000", "https://[fd00::1]:9000", True),
        ("10.0.0.0/8", "https://s3", False),
        ("", "https://localhost:9000", True),
        ("", "https://127.0.0.2", True),
        ("", "https://[::1]", True),
        ("", "https://169.254.169.254", True),
        ("", "https://metadata.google.internal", True),
        (".", "https://s3", False),
        ("example.com.", "https://s3.example.com", True),
        ("example.com.:443", "https://example.com", True),
        ("example.com", "https://s3.example.com.", True),
        ("https://host,10.0.0.0/33", "https://host", False),
    ],
)
def test_hosts_that_are_reached_directly(no_proxy, url, direct):
    proxies = read_proxies({**HTTPS, "NO_PROXY": no_proxy})
    assert (proxies.proxy_for(url) is None) is direct


@pytest.mark.parametrize(
    "text",
    [
        *("socks5://proxy:1", "http://", "http://proxy:x", "http://p/path", "http://u:secret@:1"),
        *(
            "http://bad host:9",
            "bad host",
            "http://p:9?x",
            "http://p:9#x",
            "http://300.1.1.1:8",
            "http://a..b:1",
        ),
        *("http://p:99999", "http://ü:1", "http://u:se secret@p:1", "http://u:secret#x@p:1"),
    ],
)
def test_the_address_of_a_proxy_is_checked_and_its_password_not_shown(text):
    with pytest.raises(InvalidSpec) as caught:
        read_proxies({"HTTPS_PROXY": text})
    assert "HTTPS_PROXY is not the address of a proxy" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_passwords_are_decoded_and_not_printed():
    proxy = read_proxies({"HTTPS_PROXY": "http://user:p%40ss@proxy:1"}).https
    assert proxy.authorization == "Basic dXNlcjpwQHNz"
    assert "ss" not in f"{proxy} {proxy!r} {Proxies(https=proxy)!r}"
    assert (proxy.host, proxy.port, proxy.tls) == ("proxy", 1, False)
    assert read_proxies(HTTPS).https.authorization == ""


def test_a_client_of_several_hosts_gets_plain_entries():
    proxies = read_proxies({**HTTPS, "NO_PROXY": "a:1,b,10.0.0.0/8"})
    assert proxies.excluded_for("https://far")[-2:] == ("b", "10.0.0.0/8")
    assert proxies.excluded_for("https://a:1")[-1] == "a"
    assert "169.254.0.0/16" in proxies.excluded_for("https://far")
    assert read_proxies({**HTTPS, "NO_PROXY": "*"}).excluded_for("https://far") == EVERYTHING

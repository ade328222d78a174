"""Which header fields a web server receives."""

import base64

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.credentials.web import names_of_web_credentials, web_headers, without_web_credentials

URL = "https://data.example.com:8443"
NETRC = """
# machine data.example.com login comment password comment
machine other.example.com login o password p
macdef init
machine data.example.com login macro password macro

machine DATA.example.com login "u s" password p\\ w
machine data.example.com login second password second
"""


def basic(user, password):
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()}


@pytest.mark.parametrize(
    ("held", "headers"),
    [
        ({}, {}),
        ({"HTTP_PROXY": "http://u:p@proxy:1"}, {}),
        ({"HTTP_USERNAME": "u", "HTTP_PASSWORD": "p:ü"}, basic("u", "p:ü")),
        ({"username": "u", "password": "p"}, basic("u", "p")),
        ({"username": "u", "password": "p", "HTTP_USERNAME": "v"}, basic("v", "p")),
        ({"HTTP_BEARER_TOKEN": "t"}, {"Authorization": "Bearer t"}),
        (
            {"HTTP_HEADERS": "X-Api-Key: a:b\n\nCookie:c=d \n", "username": "u", "password": "p"},
            {"X-Api-Key": "a:b", "Cookie": "c=d", **basic("u", "p")},
        ),
        ({"HTTP_HEADERS": "authorization: Digest x", "netrc": NETRC}, {"authorization": "Digest x"}),
        ({"netrc": NETRC}, basic("u s", "p w")),
        ({"netrc": NETRC, "HTTP_BEARER_TOKEN": "t"}, {"Authorization": "Bearer t"}),
        ({"netrc": "default login d password e"}, basic("d", "e")),
        ({"netrc": "machine example.com login d password e"}, {}),
        ({"WEBDAV_USERNAME": "u", "WEBDAV_PASSWORD": "p"}, {}),
    ],
)
def test_fields(held, headers):
    assert web_headers("HTTP_", URL, held) == headers


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({"HTTP_USERNAME": "u"}, "HTTP_PASSWORD is missing"),
        ({"password": "secret"}, "HTTP_USERNAME is missing"),
        ({"username": "u", "password": "secret", "HTTP_BEARER_TOKEN": "secret"}, "several credentials"),
        ({"HTTP_HEADERS": "Authorization: secret", "HTTP_BEARER_TOKEN": "secret"}, "several credentials"),
        ({"username": "u:v", "password": "secret"}, "has a colon"),
        ({"HTTP_HEADERS": "X: a\nsecret"}, "line 2 of HTTP_HEADERS is not a header field"),
        ({"HTTP_HEADERS": "X Y: secret"}, "line 1 of HTTP_HEADERS"),
        ({"HTTP_HEADERS": "Range: secret"}, "must not set Range"),
        ({"HTTP_HEADERS": "X: secret\x00y"}, "cannot be sent"),
        ({"HTTP_BEARER_TOKEN": "secreté"}, "cannot be sent"),
        ({"netrc": 'machine data.example.com login u password "secret'}, "netrc file cannot be read"),
    ],
)
def test_what_cannot_be_sent_is_named_without_its_value(held, message):
    with pytest.raises(InvalidSpec, match=message) as caught:
        web_headers("HTTP_", URL, held)
    assert "secret" not in str(caught.value)


def test_names_for_messages():
    assert names_of_web_credentials("HTTP_", URL, {"netrc": NETRC}) == ("netrc",)
    assert names_of_web_credentials("HTTP_", URL, {"netrc": "machine x login y password z"}) == ()
    held = {"username": "u", "password": "p", "HTTP_HEADERS": "X: y"}
    assert names_of_web_credentials("HTTP_", URL, held) == ("HTTP_HEADERS", "username", "password")


def test_what_goes_to_any_host_is_left_out():
    held = {"HTTP_USERNAME": "u", "password": "p", "netrc": NETRC, "AWS_REGION": "r"}
    assert without_web_credentials(held) == {"netrc": NETRC, "AWS_REGION": "r"}

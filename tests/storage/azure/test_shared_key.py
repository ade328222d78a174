"""Signatures with an account's key; tests/servers has them verified by Azurite."""

from podferry.storage.azure.shared_key import authorization

ACCOUNT, KEY = "myaccount", b"key of tests"


def signed(**headers):
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    query = {"comp": "block", "blockid": "a+b="}
    return authorization(ACCOUNT, KEY, "PUT", "/myaccount/box/a%20b", query, sent)


def test_a_signature_covers_what_is_sent():
    base = {
        "x_ms_date": "Fri, 26 Jun 2015 23:39:12 GMT",
        "x_ms_version": "2023-11-03",
        "content_length": "11",
    }
    first = signed(**base)
    assert first.startswith("SharedKey myaccount:")
    assert signed(**base) == first
    for change in (
        {"content_length": "12"},
        {"content_md5": "x"},
        {"x_ms_version": "1"},
        {"range": "bytes=0-1"},
    ):
        assert signed(**{**base, **change}) != first
    assert signed(**base, user_agent="any") == first
    assert authorization(ACCOUNT, KEY, "GET", "/myaccount/box/a%20b", {}, base) != first

"""Credentials of Google that are not whole: the message names source and field, and shows no value."""

import json

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.fsspec.google_fields import FIELDS, check_fields
from tests.storage.fsspec.test_google_credentials import ACCOUNT, FEDERATED, USER, account

__all__ = ["account"]
WHOLE = {found["type"]: found for found in (ACCOUNT, USER, FEDERATED)}
CASES = [(kind, name) for kind, names in FIELDS.items() for name in names]


@pytest.mark.parametrize("value", [None, "", 5, ["hunter2"]])
@pytest.mark.parametrize(("kind", "name"), CASES)
def test_a_field_that_is_missing_is_named(kind, name, value):
    with pytest.raises(InvalidSpec) as caught:
        check_fields("key.json", {**WHOLE[kind], name: value})
    message = str(caught.value)
    assert message.startswith(f"key.json is incomplete (type '{kind}'; missing or empty: {name}). Store")
    assert "hunter" not in message


def test_all_that_is_missing_is_named_at_once():
    with pytest.raises(InvalidSpec, match="missing or empty: client_id, client_secret, refresh_token"):
        check_fields("key.json", {"type": "authorized_user"})


def test_what_is_whole_and_other_types_pass(account):
    for found in (account, USER, FEDERATED, {"type": "other"}, {}):
        check_fields("key.json", found)


@pytest.mark.parametrize(
    "damage",
    [
        lambda key: key[:300],
        lambda key: key.replace("\n", "\\n"),
        lambda key: key.replace("PRIVATE KEY", "KEY"),
        lambda key: f"{key[:200]}?{key[201:]}",
        lambda key: "hunter2",
    ],
)
def test_a_private_key_that_cannot_be_read_is_named_and_not_shown(account, damage):
    pytest.importorskip("google.auth", reason="the extra gcs; tests/servers has it")
    damaged = damage(account["private_key"])
    with pytest.raises(InvalidSpec, match=r"the private_key of key\.json is damaged") as caught:
        check_fields("key.json", {**account, "private_key": damaged})
    assert f"({len(damaged)} characters" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert account["private_key"][40:60] not in json.dumps(str(caught.value))
    assert caught.value.__cause__ is None

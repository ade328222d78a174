import msgspec
import pytest

from podferry.webhook.cluster.signing_keys import (
    KEY_LIFETIME,
    PUBLISH_SECONDS,
    add_key,
    decode_keys,
    encode_keys,
    in_signing_order,
    key_from_certificate,
    renew_keys,
)


def test_a_new_key_signs_only_when_all_replicas_have_it() -> None:
    first = renew_keys((), (), 1000)
    assert renew_keys(first, (), 1000 + KEY_LIFETIME - 1) == first
    due = 1000 + KEY_LIFETIME
    second = renew_keys(first, (), due)
    assert second[1:] == first
    new, old = (one.key for one in second)
    assert in_signing_order(first, 1000) == (old,)
    assert in_signing_order(second, due + PUBLISH_SECONDS - 1) == (old, new)
    assert in_signing_order(second, due + PUBLISH_SECONDS) == (new, old)


def test_only_the_previous_key_is_kept() -> None:
    keys = renew_keys((), (), 0)
    for turn in (1, 2, 3):
        former = keys[0]
        keys = renew_keys(keys, (), turn * KEY_LIFETIME)
        assert keys[1:] == (former,)


def test_lost_keys_are_stored_again_by_a_replica_that_has_them() -> None:
    known = renew_keys((), (), 0)
    assert renew_keys((), known, 10) == known


def test_a_replica_adds_its_key_to_those_of_one_that_found_none() -> None:
    """Somebody has emptied the Secret, and a replica has started: pods are being signed with both."""
    known, found = renew_keys((), (), 0), renew_keys((), (), 1000)
    both = renew_keys(found, known, 1010)
    assert both == (*found, *known)
    assert in_signing_order(both, 1010) == (known[0].key, found[0].key)
    assert renew_keys(both, known, 1020) == renew_keys(both, found, 1020) == both


def test_of_two_keys_it_adds_the_one_that_it_signs_with() -> None:
    old = renew_keys((), (), 0)
    known, found = renew_keys(old, (), KEY_LIFETIME), renew_keys((), (), KEY_LIFETIME + 100)
    assert renew_keys(found, known, KEY_LIFETIME + 110) == (*found, *old)


def test_a_key_is_added_once() -> None:
    keys = add_key((), b"a", 1)
    assert add_key(keys, b"a", 2) == keys
    assert [one.key for one in add_key(add_key(keys, b"b", 2), b"c", 3)] == [b"c", b"b"]


def test_without_keys_nothing_is_signed() -> None:
    assert in_signing_order((), 0) == ()


@pytest.mark.parametrize("data", [b"", b"{}", b'[{"made_at": "x"}]', b"\xff"])
def test_what_cannot_be_read_counts_as_absent(data: bytes) -> None:
    assert decode_keys(data) == ()


def test_keys_are_read_as_they_were_written() -> None:
    keys = renew_keys((), (), 7)
    assert decode_keys(encode_keys(keys)) == keys
    assert msgspec.json.decode(encode_keys(keys))[0]["made_at"] == 7


def test_replicas_with_the_same_certificate_have_the_same_key() -> None:
    assert key_from_certificate(b"a") == key_from_certificate(b"a") != key_from_certificate(b"b")

import hashlib
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.manifest import (
    Entry,
    Manifest,
    decode_manifest,
    differences,
    encode_manifest,
    freeze,
    is_manifest_name,
    manifest_digest,
)

GOLDEN = Path(__file__).parent / "golden"
ENTRIES = (Entry("a/1.bin", 3, '"e1"'), Entry("b.txt", 0), Entry("ä.json", 5_000_000_000, "crc64:ff"))
NAMES = st.from_regex(r"[a-cä]{1,3}(-[0-9])?", fullmatch=True)
LISTINGS = st.lists(
    st.builds(Entry, NAMES, st.integers(0, 2**40), st.text(max_size=8)),
    max_size=8,
    unique_by=lambda entry: entry.name,
)


def test_the_first_format_stays_readable() -> None:
    data = (GOLDEN / "manifest-v1.json").read_bytes()
    manifest = decode_manifest(data, "golden")
    assert manifest == Manifest(
        "s3://datasets/digits",
        "261c4da7c853a06f7789faab71e1d94ff8d4fdfefebb7fe1d397bd44c01d13de",
        5_000_000_003,
        ENTRIES,
        1,
    )
    assert manifest.files == 3
    assert encode_manifest(manifest) == data


def test_the_digest_is_the_one_that_the_docstring_describes() -> None:
    lines = b'["a/1.bin",3,"\\"e1\\""]\n["b.txt",0,""]\n' + '["ä.json",5000000000,"crc64:ff"]\n'.encode()
    assert manifest_digest(ENTRIES) == hashlib.sha256(lines).hexdigest()


@given(LISTINGS)
def test_a_manifest_survives_its_document(entries: list[Entry]) -> None:
    manifest = freeze("s3://b/k", entries)
    assert decode_manifest(encode_manifest(manifest), "x") == manifest


@given(LISTINGS, st.randoms(use_true_random=False))
def test_the_order_of_the_listing_does_not_matter(entries: list[Entry], random: Random) -> None:
    shuffled = list(entries)
    random.shuffle(shuffled)
    assert freeze("s3://b", shuffled) == freeze("s3://b", entries)


@given(LISTINGS, LISTINGS)
def test_other_entries_have_another_digest(one: list[Entry], other: list[Entry]) -> None:
    same = sorted(one) == sorted(other)
    assert (freeze("s3://b", one).digest == freeze("s3://b", other).digest) == same


def test_names_that_cannot_be_files_are_all_refused_at_once() -> None:
    with pytest.raises(Corrupt) as caught:
        freeze("s3://b", [Entry("../x", 1), Entry("/y", 1), Entry("a", 1), Entry("a/b", 1)])
    assert len(caught.value.problems) == 3


@pytest.mark.parametrize("change", [{"digest": "0" * 64}, {"bytes": 4}, {"entries": (Entry("z", 3),)}])
def test_a_manifest_that_contradicts_itself_is_corrupt(change: dict[str, object]) -> None:
    manifest = msgspec.structs.replace(freeze("s3://b", [Entry("a", 3)]), **change)
    with pytest.raises(Corrupt, match="contradicts its entries"):
        decode_manifest(encode_manifest(manifest), "x")


def test_a_later_format_is_refused_by_name() -> None:
    with pytest.raises(FormatTooNew):
        decode_manifest(b'{"format":2}', "x")


def test_a_negative_size_is_corrupt() -> None:
    document = encode_manifest(freeze("s3://b", [Entry("a", 3)])).replace(b'["a",3', b'["a",-3')
    with pytest.raises(Corrupt, match=">= 0"):
        decode_manifest(document, "x")


@given(LISTINGS, LISTINGS)
def test_differences_lead_from_one_listing_to_the_other(before: list[Entry], after: list[Entry]) -> None:
    found = differences(before, after)
    old, new = ({entry.name: entry for entry in entries} for entries in (before, after))
    assert set(found.removed) == old.keys() - new.keys()
    assert set(found.added) == new.keys() - old.keys()
    assert set(found.changed) == {name for name in old.keys() & new.keys() if old[name] != new[name]}
    assert bool(found) == (sorted(before) != sorted(after))
    assert list(found.added) == sorted(found.added)


def test_differences_show_counts_and_the_first_names() -> None:
    before = [Entry(f"old/{number}", 1) for number in range(1200)] + [Entry("same", 1), Entry("new\nline", 1)]
    after = [Entry("same", 1), Entry("new\nline", 1, "e2"), Entry("zwei", 1), Entry("ä", 1)]
    assert str(differences(before, after)) == (
        r"1 changed: 'new\nline'; 2 added: zwei, ä; 1,200 removed: old/0, old/1, old/10, …"
    )
    assert str(differences(before, before)) == ""


@pytest.mark.parametrize(
    ("name", "expected"),
    [("digits.podferry.json", True), (".podferry.json", False), ("podferry.json", False), ("a.json", False)],
)
def test_a_manifest_is_recognised_by_its_name(name: str, expected: bool) -> None:
    assert is_manifest_name(name) == expected

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.dataset_reference import Reference, parse_reference, reference_to
from podferry.contract.errors import InvalidSpec
from podferry.contract.manifest import Entry, freeze
from podferry.contract.uri import Uri, parse_uri

GOLDEN = Path(__file__).parent / "golden"
DIGEST = "3f" * 32


def test_the_first_format_stays_readable() -> None:
    text = (GOLDEN / "reference-v1.txt").read_text().rstrip("\n")
    reference = parse_reference(text)
    uri = Uri("s3", "datasets", "digits #1/train", (("engine", "fsspec"),))
    assert reference == Reference(uri, DIGEST, 5_000_000_003, 1797)
    assert reference.frozen
    assert str(reference) == text


@given(
    st.none() | st.binary(min_size=32, max_size=32).map(bytes.hex),
    st.none() | st.integers(0, 10**19 - 1),
    st.none() | st.integers(0, 10**15 - 1),
    st.sampled_from(["s3://b/k", "file:///d", "gs://b/a%23b?engine=fsspec"]),
)
def test_a_reference_survives_its_text(
    digest: str | None, size: int | None, files: int | None, uri: str
) -> None:
    reference = Reference(parse_uri(uri), digest, size, files)
    assert parse_reference(str(reference)) == reference
    assert reference.frozen == (digest is not None)


# Names that are not UTF-8 have surrogates of this range in Python.
GLOB = st.text(
    st.characters(exclude_categories=["Cs"]) | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF),
    min_size=1,
)
GLOBS = st.lists(GLOB, max_size=3).map(tuple)


@given(GLOBS, GLOBS)
def test_a_selection_survives_the_text_which_nothing_expands(
    include: tuple[str, ...], exclude: tuple[str, ...]
) -> None:
    reference = Reference(parse_uri("s3://b/k"), DIGEST, 7, 2, include, exclude)
    text = str(reference)
    assert parse_reference(text) == reference
    assert text.isascii()
    assert not set("$ \n{}()'\"\\") & set(text)


def test_a_selection_is_readable() -> None:
    manifest = freeze("s3://b/k", [Entry("a.jpg", 3)])
    reference = reference_to(manifest, ["*.jpg", "train/**"], ["a,b.jpg"])
    assert str(reference).endswith("&bytes=3&files=1&include=*.jpg,train/**&exclude=a%2Cb.jpg")


@pytest.mark.parametrize("fragment", ["include=", "include=a,,b", "exclude=a b"])
def test_a_malformed_selection_is_refused(fragment: str) -> None:
    with pytest.raises(InvalidSpec, match="clude in the dataset reference is malformed"):
        parse_reference(f"s3://b/k#{fragment}")


def test_a_name_with_a_number_sign_says_how_to_write_it() -> None:
    """`#` starts the fields of a reference."""
    with pytest.raises(InvalidSpec, match=r"\(logs\).*write %23 if the name contains a #"):
        parse_reference("s3://b/run#logs")


def test_a_field_given_twice_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"given twice \(include\)"):
        parse_reference("s3://b/k#include=a&include=b")


def test_a_manifest_gives_its_reference() -> None:
    manifest = freeze("s3://b/k", [Entry("a", 3), Entry("b", 4)])
    assert str(reference_to(manifest)) == f"s3://b/k#sha256={manifest.digest}&bytes=7&files=2"


def test_all_problems_are_reported_at_once() -> None:
    with pytest.raises(InvalidSpec) as caught:
        parse_reference("digits#sha256=xyz&byte=3&files=-1")
    message = str(caught.value)
    assert len(caught.value.problems) == 4
    for part in (
        "not a URI",
        "sha256 in the dataset reference is malformed",
        "Did you mean 'bytes'?",
        "files",
    ):
        assert part in message

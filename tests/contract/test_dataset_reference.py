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

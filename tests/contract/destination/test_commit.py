import hashlib
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import (
    COMMITS,
    Commit,
    CommittedFile,
    checkpoint_folder,
    commit_name,
    decode_commit,
    encode_commit,
    sequence_of,
    step_of,
)
from podferry.contract.errors import Corrupt, FormatTooNew

GOLDEN = Path(__file__).parents[1] / "golden" / "commit-v1.json"
FOLDER = "epoch-3-step-1200-0123456789ab"
COMMIT = Commit(
    format=1,
    sequence=7,
    lineage="team.job.digits",
    checkpoint=FOLDER,
    name="epoch-3-step-1200",
    step=1200,
    created=datetime(2026, 3, 1, 12, 30, 5, 250_000, UTC),
    files=(
        CommittedFile("epoch-3-step-1200/model.pt", f"{FOLDER}/epoch-3-step-1200/model.pt", 5, "a" * 32),
        CommittedFile("epoch-3-step-1200/ä.json", f"{FOLDER}/epoch-3-step-1200/ä.json", 2**40, "b" * 32),
    ),
    agent_id="0" * 32,
    world=2,
    run="run-1",
)


def test_the_first_format_stays_readable() -> None:
    data = GOLDEN.read_bytes()
    assert decode_commit(data, "golden") == COMMIT
    assert encode_commit(COMMIT) == data
    assert COMMIT.bytes == 2**40 + 5


def test_a_later_format_is_refused_by_name() -> None:
    data = msgspec.json.decode(GOLDEN.read_bytes())
    with pytest.raises(FormatTooNew, match="format 3"):
        decode_commit(msgspec.json.encode({**data, "format": 3}), "golden")


@pytest.mark.parametrize("field", ["name", "object"])
@pytest.mark.parametrize("name", ["../x", "/x", "a/../x", "a//x", ".", "", "a\nb", "a" * 256])
def test_a_name_that_cannot_be_a_file_makes_it_corrupt(field: str, name: str) -> None:
    file = msgspec.structs.replace(COMMIT.files[0], **{field: name})
    with pytest.raises(Corrupt):
        decode_commit(encode_commit(msgspec.structs.replace(COMMIT, files=(file,))), "x")


def test_a_name_cannot_be_a_file_and_a_directory() -> None:
    files = tuple(CommittedFile(name, f"f/{name}", 1, "a" * 32) for name in ("a", "a/b"))
    with pytest.raises(Corrupt, match="both a file and a directory"):
        decode_commit(encode_commit(msgspec.structs.replace(COMMIT, files=files)), "x")


@given(st.integers(0, len(GOLDEN.read_bytes()) - 2))
def test_a_truncated_commit_is_corrupt(length: int) -> None:
    with pytest.raises(Corrupt):
        decode_commit(GOLDEN.read_bytes()[:length], "x")


@given(st.integers(0, len(GOLDEN.read_bytes()) - 1), st.integers(0, 7))
def test_a_flipped_bit_makes_it_corrupt(at: int, bit: int) -> None:
    """Also if the result is a valid document: with other names or numbers, or of a later format."""
    data = bytearray(GOLDEN.read_bytes())
    data[at] ^= 1 << bit
    with pytest.raises(Corrupt):
        decode_commit(bytes(data), "x")


def test_a_commit_without_its_checksum_is_corrupt() -> None:
    with pytest.raises(Corrupt, match=r"is damaged.*sha256 is missing"):
        decode_commit(msgspec.json.encode(COMMIT), "x")


@given(st.integers(1, 10**12 - 1), st.integers(1, 10**12 - 1))
def test_names_of_commits_sort_as_their_numbers_do(one: int, other: int) -> None:
    first, second = commit_name(one), commit_name(other)
    assert (first < second) == (one < other)
    assert sequence_of(first.removeprefix(f"{COMMITS}/")) == one


@pytest.mark.parametrize("name", ["1.json", "000000000001.json.tmp", "00000000000a.json", "latest.json"])
def test_other_names_are_not_commits(name: str) -> None:
    assert sequence_of(name) is None


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("epoch-3-step-1200", 1200),
        ("iter_0000500", 500),
        ("last", None),
        ("v2.final", 2),
        ("step-200-rank1", 200),
        ("checkpoint_1_200-shard0", 200),
        ("gpu3_epoch_7", 7),
        ("epoch_7_tp1_pp2", 7),
        ("model_rank_3", None),
        ("dp_100", 100),
        ("rank_5", 5),
        ("node2vec", 2),
        ("epoch-3-of-10", 10),
    ],
)
def test_the_step_is_the_last_number_of_a_name(name: str, step: int | None) -> None:
    assert step_of(name) == step


def test_the_folder_is_the_one_that_the_docstring_describes() -> None:
    files = [("b", 2, "ff"), ("a", 1, "00")]
    lines = b'[["a",1,"00"],["b",2,"ff"]]'
    assert checkpoint_folder("last", files) == f"last-{hashlib.sha256(lines).hexdigest()[:12]}"
    assert checkpoint_folder("last", reversed(files)) == checkpoint_folder("last", files)


FILES = st.lists(
    st.tuples(st.text(max_size=3), st.integers(0, 9), st.text("01", max_size=2)),
    max_size=3,
    unique_by=lambda file: file[0],
)


@given(FILES, FILES)
def test_another_content_has_another_folder(one: list, other: list) -> None:
    assert (checkpoint_folder("n", one) == checkpoint_folder("n", other)) == (sorted(one) == sorted(other))

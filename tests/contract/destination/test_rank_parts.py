from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.commit import CommittedFile
from podferry.contract.destination.rank_parts import (
    GangMember,
    MembershipView,
    RankPart,
    decode_member,
    decode_part,
    epoch_of,
    joined_files,
    joined_folder,
    member_name,
    member_of,
    part_name,
    series_and_position,
)
from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.versioned_json import encode_checksummed

GOLDEN = Path(__file__).parents[1] / "golden"
GOLDEN_NAMES = {GangMember: "member", RankPart: "part"}
NOW = datetime(2026, 3, 1, 12, 30, 5, 250_000, UTC)
FOLDER = "step-100-0123456789ab"
PART = RankPart(
    format=1,
    lineage="team.job.digits",
    name="step-100",
    step=100,
    rank=1,
    world=4,
    agent_id="0" * 32,
    member=f"1.2-{'0' * 32}",
    epoch="f" * 32,
    base=7,
    folder=FOLDER,
    files=(
        CommittedFile("step-100/rank-1.pt", f"{FOLDER}/step-100/rank-1.pt", 5, "a" * 32),
        CommittedFile("step-100/ä.json", "step-50-ba9876543210/step-50/ä.json", 2**40, "b" * 32),
    ),
    created=NOW,
)
MEMBER = GangMember(
    format=1,
    agent_id="0" * 32,
    created=NOW,
    base=7,
    before=("0-1111", "1-2222"),
    views=(MembershipView(1772368205.25, "e" * 32), MembershipView(1772368207.5, "f" * 32)),
)


@pytest.mark.parametrize(("document", "decode"), [(PART, decode_part), (MEMBER, decode_member)])
def test_the_first_format_stays_readable(document, decode) -> None:
    data = (GOLDEN / f"{GOLDEN_NAMES[type(document)]}-v1.json").read_bytes()
    assert decode(data, "golden") == document
    assert encode_checksummed(document) == data


@pytest.mark.parametrize(("document", "decode"), [(PART, decode_part), (MEMBER, decode_member)])
def test_a_later_format_is_refused_by_name(document, decode) -> None:
    data = msgspec.json.decode(encode_checksummed(document))
    with pytest.raises(FormatTooNew, match="format 2"):
        decode(msgspec.json.encode({**data, "format": 2}), "x")


@pytest.mark.parametrize("field", ["name", "object"])
def test_a_name_that_cannot_be_a_file_makes_it_corrupt(field: str) -> None:
    file = msgspec.structs.replace(PART.files[0], **{field: "../x"})
    with pytest.raises(Corrupt):
        decode_part(encode_checksummed(msgspec.structs.replace(PART, files=(file,))), "x")


def test_a_name_cannot_be_a_file_and_a_directory() -> None:
    files = tuple(CommittedFile(name, f"f/{name}", 1, "a" * 32) for name in ("a", "a/b"))
    with pytest.raises(Corrupt, match="both a file and a directory"):
        decode_part(encode_checksummed(msgspec.structs.replace(PART, files=files)), "x")


def test_the_writer_is_what_follows_the_first_dash_of_a_name() -> None:
    assert (member_name(3, "ab"), member_name(3, "ab", 2)) == ("3-ab", "3.2-ab")
    assert part_name("step-100", 3) == ".podferry/parts/step-100/3.json"


@given(st.integers(0, 10**6), st.text("0123456789abcdef-", min_size=1), st.integers(1, 99))
def test_a_members_name_round_trips(rank: int, writer: str, life: int) -> None:
    assert member_of(member_name(rank, writer, life)) == (rank, life, writer)


@pytest.mark.parametrize("name", ["", "3", "x-ab", "3.-ab", "3.x-ab", "-ab", "none-ab"])
def test_other_names_are_not_members(name: str) -> None:
    assert member_of(name) is None


@given(st.lists(st.text(), max_size=4, unique=True), st.lists(st.text(), max_size=4, unique=True))
def test_an_epoch_is_a_set_of_names(one: list[str], other: list[str]) -> None:
    assert (epoch_of(one) == epoch_of(other)) == (sorted(one) == sorted(other))


@pytest.mark.parametrize(
    ("earlier", "later"),
    [("step-90", "step-100"), ("e1-s9", "e1-s10"), ("e1-s10", "e2-s1"), ("s=1-loss=0.9", "s=2-loss=0.1")],
)
def test_names_of_one_series_are_ordered_by_all_their_numbers(earlier: str, later: str) -> None:
    assert series_and_position(earlier)[0] == series_and_position(later)[0]
    assert series_and_position(earlier) < series_and_position(later)


def test_names_of_another_text_are_of_another_series() -> None:
    assert series_and_position("best-3")[0] != series_and_position("step-100")[0]


def part(rank: int, **files: str) -> RankPart:
    held = [CommittedFile(name, f"p{rank}/{name}", 1, content) for name, content in files.items()]
    return msgspec.structs.replace(PART, rank=rank, folder=f"p{rank}", files=tuple(sorted(held)))


def test_equal_files_are_joined_and_different_ones_keep_their_rank() -> None:
    found = joined_files([part(1, a="1", b="x", only="z"), part(0, a="1", b="y")])
    assert [(file.name, file.object, file.rank) for file in found] == [
        ("a", "p0/a", None),
        ("b", "p0/b", 0),
        ("b", "p1/b", 1),
        ("only", "p1/only", None),
    ]


CONTENTS = st.dictionaries(st.sampled_from("abc"), st.sampled_from("xy"), max_size=3)


@given(CONTENTS, CONTENTS, CONTENTS, CONTENTS)
def test_another_content_of_any_rank_has_another_folder(a: dict, b: dict, c: dict, d: dict) -> None:
    one, other = (joined_files([part(0, **x), part(1, **y)]) for x, y in ((a, b), (c, d)))

    def seen(files: tuple[CommittedFile, ...]) -> list:
        return [(file.name, file.xxh128, file.rank) for file in files]

    assert (joined_folder("n", one) == joined_folder("n", other)) == (seen(one) == seen(other))


@given(CONTENTS, CONTENTS)
def test_each_rank_finds_all_that_it_wrote(a: dict, b: dict) -> None:
    parts = [part(0, **a), part(1, **b)]
    files = joined_files(parts)
    for mine in parts:
        found = {f.name: f.xxh128 for f in files if f.rank in {None, mine.rank}}
        assert {f.name: f.xxh128 for f in mine.files}.items() <= found.items()

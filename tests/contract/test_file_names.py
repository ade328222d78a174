import posixpath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.file_names import case_clashes, clashes, name_problem, quoted


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "a/b.txt",
        "..a/b..",
        "ä/ö",
        "a" * 255,
        "a b",
        ".hidden",
        "ends in a dot.",
        "ends in a blank ",
        "back\\slash",
        "/".join(["d" * 255] * 15),
    ],
)
def test_plain_names_may_become_files(name: str) -> None:
    assert name_problem(name) is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "not a plain relative path"),
        ("/etc/passwd", "not a plain relative path"),
        ("../x", "not a plain relative path"),
        ("a/../../x", "not a plain relative path"),
        ("a//b", "not a plain relative path"),
        ("a/", "not a plain relative path"),
        ("./a", "not a plain relative path"),
        ("a\nb", "control characters"),
        ("a\x7fb", "control characters"),
        ("a\x9bb", "control characters"),
        ("ä" * 128, "longer than 255 bytes"),
        ("/".join(["d" * 200] * 20), "longer than 3,840 bytes"),
    ],
)
def test_unsafe_names_are_refused(name: str, reason: str) -> None:
    problem = name_problem(name)
    assert problem is not None
    assert reason in problem.what
    assert "\n" not in problem.measured


@given(st.text(alphabet="ab./\\\0", max_size=12))
def test_no_accepted_name_leaves_its_directory(name: str) -> None:
    if name_problem(name) is None:
        joined = posixpath.normpath(posixpath.join("/root/dir", name))
        assert joined == f"/root/dir/{name}"


def test_a_name_cannot_be_a_file_and_a_directory() -> None:
    problems = clashes(["a", "a/b", "a/b/c", "ab", "x/y"])
    assert [problem.measured for problem in problems] == ["'a'", "'a/b'"]
    assert clashes(["a", "ab", "a.b/c"]) == []


@given(st.lists(st.text(alphabet="ab/", min_size=1, max_size=6), max_size=8))
def test_clashes_are_the_names_that_are_in_front_of_others(names: list[str]) -> None:
    names = [name for name in names if name_problem(name) is None]
    both = {name for name in names if any(other.startswith(f"{name}/") for other in names)}
    assert {problem.measured for problem in clashes(names)} == {quoted(name) for name in both}


def test_readable_names_are_shown_as_they_are_and_the_rest_is_escaped() -> None:
    assert quoted("step-100 é+1/模型.bin") == "'step-100 é+1/模型.bin'"
    assert quoted("a\n\x1b[2J\udcff\u202e\ue000") == r"'a\n\x1b[2J\udcff\u202e\ue000'"
    assert len(quoted("a" * 999)) == 200


def test_names_that_a_case_insensitive_file_system_merges_are_reported() -> None:
    names = ["x/B", "x/b", "X/c", "\u00e9", "e\u0301", "STRASSE", "straße"]
    assert [problem.measured for problem in case_clashes(names)] == [
        "'x/B', 'x/b'",
        r"'e\u0301', '\xe9'",
        r"'STRASSE', 'stra\xdfe'",
    ]
    assert [problem.what for problem in case_clashes(["A", "a/b"])] == [
        "a name is both a file and a directory"
    ]
    assert case_clashes(["a/b", "a/c", "A/d"]) == [], "a directory may be called in two ways"


def test_a_name_that_is_not_utf8_is_refused() -> None:
    problem = name_problem("a/\udcff")
    assert problem is not None
    assert "UTF-8" in problem.what
    str(problem).encode()


@given(st.text(alphabet="ab./ ~\x1f\x7f\n", max_size=8))
def test_the_fast_path_and_the_full_check_agree(name: str) -> None:
    """A component that is not ASCII needs the full check."""
    assert (name_problem(name) is None) == (name_problem(f"ä/{name}") is None)

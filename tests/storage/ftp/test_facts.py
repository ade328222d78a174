import pytest

from podferry.contract.errors import Corrupt, InvalidSpec
from podferry.storage.ftp.facts import Facts, read_facts, read_line, read_lines, tag_of


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            "type=file;size=12;modify=20261122224713; two words",
            Facts("two words", "file", 12, "20261122224713"),
        ),
        (" Type=dir;Modify=20261122224713.5; sub", Facts("sub", "directory", None, "20261122224713.5")),
        ("type=OS.unix=slink:/target;size=3; to", Facts("to", "link", 3)),
        ("type=cdir;perm=el; .", Facts(".", "cdir")),
        ("type=file;size=x;  leading", Facts(" leading", "file")),
        (" type=file;size=5;  leading", Facts(" leading", "file", 5)),
    ],
)
def test_the_facts_of_mlsd(line, found):
    assert read_facts(line) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("-rw-r--r--    1 0        0              12 Nov 22 22:47 .hidden", Facts(".hidden", "file", 12)),
        ("-rw-r--r--    1 ana users 7 Jan 02  2025 two words -> here", Facts("two words -> here", "file", 7)),
        ("-rw-r--r--+   1 0        0               1 Nov 22 22:47  leading ", Facts(" leading ", "file", 1)),
        ("drwxr-xr-x    2 0        0            4096 Nov 22 22:47 sub", Facts("sub", "directory", 4096)),
        (
            "lrwxrwxrwx    1 0        0               3 Nov 22 22:47 to -> two words",
            Facts("to -> two words", "link", 3),
        ),
        ("prw-r--r--    1 0        0               0 Nov 22 22:47 pipe", Facts("pipe", "other", 0)),
        ("11-22-26  10:47PM       <DIR>          sub dir", Facts("sub dir", "directory")),
        ("11-22-2026  10:47PM                 1234 a.bin", Facts("a.bin", "file", 1234)),
        ("total 12", None),
        ("", None),
    ],
)
def test_the_lines_of_list(line, found):
    assert read_line(line) == found


@pytest.mark.parametrize("line", ["a.bin", "<html>", "-rw-r--r-- 1 0 0 twelve Nov 22 22:47 a"])
def test_a_line_in_no_known_format_is_an_error(line):
    with pytest.raises(InvalidSpec, match="unknown format"):
        read_line(line)


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        ("l to -> two words", ["to"]),
        ("- foo|l foo -> odd -> t", ["foo", "foo -> odd"]),
        ("l foo -> odd -> t|- foo", ["foo -> odd", "foo"]),
        ("l foo -> odd -> t|d foo", ["foo -> odd", "foo"]),
        ("l foo -> odd -> t|l foo -> t", ["foo -> odd", "foo"]),
        ("- foo|- foo -> b|l foo -> b -> c -> d", ["foo", "foo -> b", "foo -> b -> c"]),
        ("- foo|l foo -> odd", ["foo", "foo -> odd"]),  # the target is not shown
        ("- foo -> odd|l foo -> odd", ["foo -> odd", "foo"]),
        ("l foo -> t|l foo -> t|- a|- a", ["foo", "a"]),
    ],
)
def test_links_get_the_names_that_nothing_else_has(listed, names):
    lines = [f"{line[0]}rw-r--r-- 1 0 0 3 Nov 22 22:47 {line[2:]}" for line in listed.split("|")]
    assert [facts.name for facts in read_lines([*lines, "total 12"])] == names


def test_a_link_without_a_name_of_its_own_is_an_error():
    lines = [f"{kind}rw-r--r-- 1 0 0 3 Nov 22 22:47 {name}" for kind, name in (("-", "a"), ("-", "a -> b"))]
    with pytest.raises(Corrupt, match=r"two files of one name .*'a -> b'"):
        read_lines([*lines, lines[1].replace("-rw", "lrw", 1)])


def test_a_tag_changes_with_time_and_size():
    assert tag_of(255, "20261122224713.123") == "20261122224713-ff"
    assert tag_of(255, "") == "ff"

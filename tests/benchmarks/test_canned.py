import os
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from canned import contents, files_below, lines, nginx_tag

from podferry.contract.manifest import Entry


def test_tags_are_those_of_nginx() -> None:
    # From an answer of nginx 1.22: Last-Modified 2026-11-21T19:00:00Z, Content-Length 35000.
    assert nginx_tag(1795287600, 35_000) == '"6b01ea30-88b8"'


def test_an_element_says_what_the_entry_does() -> None:
    element = ET.fromstring(contents(Entry("a&b.bin", 7, '"1-7"'), 0))  # noqa: S314  # made here
    found = {child.tag: child.text for child in element}
    assert (found["Key"], found["ETag"], found["Size"]) == ("a&b.bin", '"1-7"', "7")
    assert found["LastModified"] == "1970-01-01T00:00:00.000Z"


@pytest.mark.parametrize("names", [["b", "a/1", "a.1", "a-1", "é", "z"]])
def test_keys_are_sorted_by_their_bytes(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
        os.utime(path, (1000, 1000))
    found = [line.split("\t")[0] for line in lines(files_below(tmp_path))]
    assert found == ["a-1", "a.1", "a/1", "b", "z", "é"]

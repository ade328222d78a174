import io
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.formats.file_section import read_at, read_exactly, section, size_of

DATA = bytes(range(200))


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path: Path = tmp_path_factory.mktemp("sections") / "data"
    path.write_bytes(DATA)
    with path.open("rb") as opened:
        yield opened


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 220), st.integers(0, 220), st.lists(st.tuples(st.integers(0, 250), st.integers(0, 50))))
def test_a_section_reads_like_a_file_with_these_bytes(file, start, size, reads):
    part, expected = section(file, start, size), io.BytesIO(DATA[start : start + size])
    for position, length in reads:
        assert part.seek(position) == expected.seek(position)
        assert part.read(length) == expected.read(length)
        assert part.tell() - position == expected.tell() - position


def test_a_section_knows_its_end(file):
    part = section(file, 10, 20)
    assert part.seek(-1, os.SEEK_END) == 19
    assert part.read() == DATA[29:30]
    assert size_of(part) == 20
    assert part.read(2) == DATA[10:12]


def test_sections_of_one_file_do_not_disturb_each_other(file):
    one, other = section(file, 0, 100), section(file, 100, 100)
    assert [one.read(1), other.read(1), one.read(1)] == [DATA[:1], DATA[100:101], DATA[1:2]]


@pytest.mark.parametrize(("start", "length"), [(190, 11), (200, 1), (-1, 1), (1 << 63, 1)])
def test_bytes_that_do_not_exist_are_an_error(file, start, length):
    with pytest.raises(EOFError):
        read_at(file, start, length)


def test_exactly_the_bytes_that_exist_can_be_read(file):
    assert read_at(file, 190, 10) == DATA[190:]
    assert read_exactly(section(file, 190, 10), 10) == DATA[190:]
    with pytest.raises(EOFError):
        read_exactly(section(file, 190, 10), 11)

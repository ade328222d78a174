"""What a killed run has left."""

from pathlib import Path

import pytest

from podferry.sidecar.launch.leftovers import find_leftovers, remove
from tests.support.killed_run import killed_run


@pytest.fixture
def leftover(tmp_path):
    name = killed_run(tmp_path, wait="durable")
    (found,) = [one for one in find_leftovers().leftovers if one.id == name]
    yield found
    remove(found)
    assert not any(Path(path).exists() for path in found.paths)


def test_it_says_where_it_belongs_and_what_is_not_durable(leftover, tmp_path):
    assert leftover.not_durable == ("epoch-2",)
    assert leftover.destination == f"file://{tmp_path}/destination"
    assert (leftover.lineage, leftover.trained, leftover.problem) == ("t", True, "")
    assert leftover.command[1] == "-c"
    assert leftover.bytes > len(b"onetwo")
    assert Path(leftover.checkpoints, "epoch-2.bin").read_bytes() == b"two"
    assert leftover.outputs is None

import asyncio
import re
from datetime import UTC, datetime

import msgspec
import pytest

from podferry.cli.checkpoints.lineage_args import read_history
from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store

FIT = "team.job.fit"


@pytest.mark.parametrize("verb", ["ls", "show", "verify"])
def test_a_uri_may_hold_the_lineage(podferry, destination, verb):
    apart = podferry("checkpoints", verb, destination.uri, FIT)
    assert apart == podferry("checkpoints", verb, destination.uri / FIT)
    assert apart.code == 0


def test_a_uri_that_is_both_is_a_destination(podferry, destination):
    destination.commit(f"{FIT}/inner", {"w": b"1"}, datetime.now(UTC), "w-1")
    out = podferry("checkpoints", "ls", destination.uri / FIT).out
    assert [line.split()[0] for line in out.splitlines()] == ["LINEAGE", "inner"]


@pytest.mark.parametrize("word", ["step-100", "step-100.pt", "step-100/"])
def test_a_checkpoint_is_found_by_name_file_or_folder(podferry, destination, word):
    out = podferry("checkpoints", "show", destination.uri, FIT, word).out
    folder = re.search(r"step-100-[0-9a-f]{12}", out)
    assert folder
    assert podferry("checkpoints", "show", destination.uri / FIT, folder[0]).out == out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["team.job.fti"], "Did you mean 'team.job.fit'?"),
        ([FIT, "step-20"], "Did you mean 'step-200'?"),
        ([], "the lineage is not specified (2 lineages below"),
        ([FIT, "step-100", "more"], "unexpected extra argument (more)"),
    ],
)
def test_a_missing_checkpoint_is_an_error_message(podferry, destination, words, said):
    answer = podferry("checkpoints", "show", destination.uri, *words)
    assert answer.code != 0
    assert said in answer.err


def test_an_empty_destination_suggests_the_nearest(podferry, destination):
    answer = podferry("checkpoints", "ls", destination.uri.root / "taem")
    assert answer.code == 1
    assert f"Did you mean {destination.uri}?" in answer.err


def test_a_newest_commit_of_a_later_podferry_is_never_skipped(podferry, destination, tmp_path):
    destination.write(f"{FIT}/{commit_name(3)}", b'{"format": 3}')
    for words in (["ls"], ["show", FIT], ["verify"], ["restore", FIT, "--to", tmp_path / "out"]):
        verb, *rest = words
        said = podferry("checkpoints", verb, destination.uri, *rest)
        assert said.code == 1, words
        assert "written by a later podferry (format 3" in said.err
        assert "Upgrade podferry." in said.err
    assert not (tmp_path / "out").exists()


class CountingReader(CommitReader):
    """Counts the commits that are being read at a time."""

    reading = most = 0

    async def read(self, sequence):
        self.reading += 1
        self.most = max(self.most, self.reading)
        await asyncio.sleep(0)
        try:
            return await super().read(sequence)
        finally:
            self.reading -= 1


def test_commits_are_read_in_parallel(destination):
    for number in range(20):
        destination.commit(FIT, {f"s-{number}.pt": b"%d" % number}, datetime.now(UTC), f"s-{number}")
    reader = CountingReader(LineageStore(open_store(destination.uri), FIT))
    history = asyncio.run(read_history(reader))
    assert reader.most == 22
    assert [commit.sequence for commit in history.commits] == list(range(22, 0, -1))


def test_commits_of_podferry_0_1_are_rated(podferry, destination):
    whole = destination.commit("old", {"s-1/a": b"1", "s-1/b": b"1"}, datetime.now(UTC), "s-1")
    half = destination.commit("old", {"s-2/a": b"2"}, datetime.now(UTC), "s-2")
    for commit in (whole, half):
        old = msgspec.structs.replace(commit, confidence=None)
        destination.write(f"old/{commit_name(commit.sequence)}", encode_commit(old))
    listed = podferry("checkpoints", "ls", destination.uri, "old").out.splitlines()
    assert ["doubtful" in line for line in listed[1:]] == [True, False]
    # The newest alone is rated by the one before, too.
    shown = podferry("checkpoints", "show", destination.uri, "old").out
    assert "fewer: s-1/b of s-1 has no counterpart" in shown
    listed = podferry("checkpoints", "ls", destination.uri).out.splitlines()
    assert listed[1].split()[-2:] == ["doubtful", "s-2"]

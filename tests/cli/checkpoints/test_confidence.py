import asyncio
import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from podferry.cli import output
from podferry.cli.checkpoints.confidence import (
    confidence_of,
    describe_doubt,
    doubt_problem,
    read_confirmations,
)
from podferry.contract.destination.commit import Confidence, Doubt, DoubtKind
from podferry.contract.destination.confidence import Confirmer, confirmation_name
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.storage.factory import open_store

FIT = "team.job.fit"
WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def doubtful(destination):
    return destination.doubtful()


@pytest.fixture
def reader(destination):
    return CommitReader(LineageStore(open_store(destination.uri), FIT))


def test_a_doubt_is_one_line():
    assert describe_doubt(Doubt(DoubtKind.OPEN, "a is open")) == "open: a is open"
    assert describe_doubt(Doubt(DoubtKind.FEWER, "a is missing", 2)) == "fewer: rank 2: a is missing"


def test_the_remedy_is_the_command(doubtful, destination):
    problem = doubt_problem(doubtful, destination.uri)
    assert problem.measured == "unproven: nothing shows where its file ends"
    assert problem.remedy.endswith(f"podferry checkpoints confirm {destination.uri} {FIT} step-300")
    assert confidence_of(None) == "-"


def test_a_late_commit_is_shown_as_such(doubtful):
    late = replace(doubtful, late=True)
    assert confidence_of(replace(late, confidence=Confidence.SURE, doubts=())) == "sure, late"
    assert confidence_of(late) == "doubtful"


def test_lists_have_a_column(podferry, destination, doubtful):
    rows = [line.split() for line in podferry("checkpoints", "ls", destination.uri, FIT).out.splitlines()]
    at = rows[0].index("CONFIDENCE")
    # The age and the size are two words each.
    assert [row[at + 2] for row in rows[1:]] == ["doubtful", "sure", "sure"]
    out = podferry("checkpoints", "ls", destination.uri).out
    assert [("doubtful" in line, "sure" in line) for line in out.splitlines()[1:]] == [
        (True, False),
        (False, True),
    ]
    [found] = json.loads(podferry("checkpoints", "ls", destination.uri, FIT, "-o", "json").out)
    assert [one["confidence"] for one in found["commits"]] == ["doubtful", "sure", "sure"]


def test_show_names_every_doubt(podferry, destination, doubtful):
    out = podferry("checkpoints", "show", destination.uri, FIT).out
    assert "confidence  doubtful\ndoubt       unproven: nothing shows where its file ends\n" in out
    found = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "-o", "json").out)
    assert found["doubts"] == [{"kind": "unproven", "reason": "nothing shows where its file ends"}]
    assert (found["confidence"], found["confirmations"]) == ("doubtful", [])


def test_show_says_who_confirmed(podferry, destination, doubtful, reader):
    asyncio.run(confirm(reader.store, doubtful, Confirmer.AGENT, "step-400 was saved", now=lambda: WHEN))
    out = podferry("checkpoints", "show", destination.uri, FIT).out
    assert "confirmed   by an agent, 2026-01-02T03:04:05+00:00: step-400 was saved\n" in out
    assert "confidence  sure\n" in out
    assert "doubt  " not in out
    found = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "-o", "json").out)
    assert [one["by"] for one in found["confirmations"]] == ["agent"]


def test_confirmations_of_other_content_do_not_count(destination, doubtful, reader):
    for rank in (1, None, 0):
        asyncio.run(confirm(reader.store, doubtful, Confirmer.PERSON, f"rank {rank}", rank))
    found = asyncio.run(read_confirmations(reader, doubtful))
    assert [one.rank for one in found] == [None, 0, 1]
    destination.write(f"{FIT}/{confirmation_name(3, 0)}", b"{")
    assert len(asyncio.run(read_confirmations(reader, doubtful))) == 2
    destination.sequences[FIT] = 2
    other = destination.doubtful("step-301")
    assert asyncio.run(read_confirmations(reader, other)) == []


@pytest.mark.parametrize(("no_colour", "coloured"), [("", True), ("1", False)])
def test_doubtful_is_yellow_on_a_terminal(
    monkeypatch, capsys, podferry, destination, doubtful, no_colour, coloured
):
    monkeypatch.setenv("NO_COLOR", no_colour)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    for words in (["ls", destination.uri, FIT], ["show", destination.uri, FIT]):
        said = podferry("checkpoints", *words)
        assert ("\x1b[33mdoubtful" in said.out) is coloured
    assert ("\x1b[33m" in podferry("checkpoints", "verify", destination.uri).err) is coloured

"""What a run without a checkpoint learns about other runs of its program."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from podferry.contract.destination.commit import FORMAT, LATEST, Commit, encode_commit
from podferry.contract.destination.provenance import DatasetVersion, RunOrigin
from podferry.contract.errors import Unavailable
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit import similar_lineages as module
from podferry.sidecar.checkpoint.commit.similar_lineages import MAX_READ, MAX_SHOWN, similar_lineages
from podferry.sidecar.config.agent_config import ProgramRun
from podferry.storage.memory.store import Content, Fault, MemoryStore

WHEN = datetime(2026, 1, 1, 12, tzinfo=UTC)
DATA, OTHER = DatasetVersion("s3://data/a", "a" * 64), DatasetVersion("s3://data/b", "b" * 64)
OWN = RunOrigin("/work/train.py", "/work", "gpu-1", "0" * 12)
RUN = ProgramRun(OWN, ("local.train.",), ("local.train.former",))


@pytest.fixture
def store():
    return MemoryStore(parse_uri("memory://results/base"), Content())


def put(store, lineage, origin=OWN, datasets=(DATA,), age=0, **named):
    created = WHEN - timedelta(hours=age)
    commit = Commit(
        FORMAT, 7, lineage, "e-7-00", "e-7", 7, created, (), "w", origin=origin, datasets=datasets, **named
    )
    store.content.objects[f"base/{lineage}/{LATEST}"] = encode_commit(commit)


def moved(**changes):
    fields = {
        "program": OWN.program,
        "directory": OWN.directory,
        "host": OWN.host,
        "arguments": OWN.arguments,
    }
    return RunOrigin(**fields | changes)


async def found(store, run=RUN, datasets=(DATA,)):
    return await similar_lineages(store, "local.train.own", run, datasets)


async def test_each_is_named_with_its_run_and_the_option_that_takes_it(store):
    put(store, "local.train.1", moved(program="/old/train.py", directory="/old"))
    put(store, "local.train.2", moved(arguments="1" * 12, host="gpu-2"), datasets=(OTHER,), age=1)
    first, second = await found(store)
    by = "by /old/train.py in /old on gpu-1; another directory"
    assert first == f"--lineage local.train.1 (e-7 of 2026-01-01 12:00 UTC, {by})"
    by = "by /work/train.py in /work on gpu-2; other arguments, another host, another dataset: s3://data/b"
    assert second == f"--restore memory://results/base/local.train.2 (e-7 of 2026-01-01 11:00 UTC, {by})"
    in_python = ProgramRun(OWN, RUN.prefixes, in_python=True)
    assert (await found(store, in_python))[0].startswith('lineage="local.train.1" (')


@pytest.mark.parametrize(
    ("before", "difference"),
    [
        (DatasetVersion(DATA.uri, "c" * 64), "; its dataset has changed)"),
        (DatasetVersion("file:///moved/a", DATA.digest), "; the same data under another URI)"),
        (None, "; another number of datasets)"),
    ],
)
async def test_what_differs_in_the_data_is_named(store, before, difference):
    put(store, "local.train.1", datasets=(before,) if before else ())
    (line,) = await found(store)
    assert line.startswith("--lineage local.train.1 ")
    assert line.endswith(difference)


async def test_lineages_of_the_version_before_are_named_first_if_the_command_is_the_same(store):
    put(store, "local.train.unknown", None, None)
    put(store, "local.train.former", None, None, age=9)
    put(store, "team.job.train", None, None)
    lines = await found(store)
    assert [line.split()[1] for line in lines] == ["local.train.former", "local.train.unknown"]
    assert "this command under podferry 0.1" in lines[0]


@pytest.mark.parametrize(
    ("lineage", "origin", "datasets", "similar"),
    [
        ("named-by-hand", OWN, (DATA,), True),
        ("a", moved(program="/x/train.py", directory="/x"), (OTHER,), True),
        ("a", moved(program="/x/train.py", directory="/x", arguments="1" * 12), (DATA,), True),
        ("a", moved(program="/x/train.py", directory="/x", arguments="1" * 12), (OTHER,), False),
        ("a", moved(program="/x/train.py", directory="/x", arguments="1" * 12), (), False),
        ("a", moved(program="/work/test.py"), (DATA,), False),
        ("local.train.own", OWN, (DATA,), False),
        ("a", None, (DATA,), False),
    ],
)
async def test_other_programs_are_not_named(store, lineage, origin, datasets, similar):
    put(store, lineage, origin, datasets)
    assert bool(await found(store)) is similar


async def test_code_on_the_command_line_is_the_same_only_with_the_same_text(store):
    code = moved(program="python -c")
    put(store, "a", code)
    assert await found(store, ProgramRun(code, ("local.python.",)))
    assert not await found(
        store, ProgramRun(moved(program="python -c", arguments="1" * 12), ("local.python.",))
    )


async def test_the_number_of_requests_is_bounded(store):
    for number in range(3 * MAX_READ):
        put(store, f"local.train.{number}")
    lines = await found(store)
    assert len(lines) == MAX_SHOWN + 1
    more = 3 * MAX_READ - MAX_SHOWN
    assert lines[-1] == f"and {more} more: podferry checkpoints ls memory://results/base"
    assert len(store.content.calls) == MAX_READ + 1


async def test_a_store_that_fails_or_is_slow_only_costs_the_hint(store, monkeypatch):
    put(store, "local.train.1")
    store.faults.append(Fault("children", error=Unavailable.of("no answer")))
    assert await found(store) == []
    store.faults.clear()
    store.content.objects[f"base/local.train.2/{LATEST}"] = b"damaged"
    assert len(await found(store)) == 1
    monkeypatch.setattr(module, "SECONDS", 0.01)
    store.faults.append(Fault("children", wait=asyncio.Event()))
    assert await found(store) == []

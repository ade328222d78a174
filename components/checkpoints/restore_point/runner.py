"""Runs the step `restore_point`: finds what a training would resume from."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from podferry.components.log_tables import print_line, print_table
from podferry.components.store_access import step_store_config
from podferry.components.trained_task.locate import TrainedPlace
from podferry.components.verdict import verdict
from podferry.contract.destination.commit import Commit
from podferry.contract.errors import FerryError, InvalidSpec
from podferry.contract.lineage import lineage_problem
from podferry.contract.quantity import format_bytes
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.choice import RestoreChoice, RestoreSource
from podferry.storage.factory import open_store
from podferry.storage.store import Store


@dataclass(frozen=True, slots=True)
class FoundCheckpoint:
    """The newest sure checkpoint of a lineage: where its data is, and what it is."""

    uri: str
    lineage: str
    name: str
    commit: Commit


def find(place: TrainedPlace, endpoint: str = "", region: str = "") -> FoundCheckpoint:
    """The newest commit that is sure and whose objects all exist.

    Raises:
        NotFound: There is none, with what was passed over.
        InvalidSpec and the store's errors: The destination cannot be read.
    """
    InvalidSpec.raise_any(filter(None, map(lineage_problem, place.lineages)))
    return asyncio.run(_find(place, endpoint or place.endpoint, region or place.region))


def find_or_exit(place: TrainedPlace, endpoint: str = "", region: str = "") -> FoundCheckpoint:
    """The same for a step, which ends with its verdict."""
    return verdict(find, place, endpoint, region)


async def _find(place: TrainedPlace, endpoint: str, region: str) -> FoundCheckpoint:
    store = open_store(parse_uri(place.checkpoints), step_store_config(endpoint, region))
    try:
        first: FerryError | None = None
        for lineage in place.lineages:
            found, failure = await _newest(store, lineage)
            if found is not None:
                return found
            first = first or failure
        assert first is not None  # noqa: S101 - there is at least one lineage
        raise first
    finally:
        await store.close()


async def _newest(store: Store, lineage: str) -> tuple[FoundCheckpoint | None, FerryError | None]:
    """The newest sure commit of a lineage with all its objects, or why there is none."""
    reader = CommitReader(LineageStore(store, lineage))
    choice = RestoreChoice(RestoreSource(reader), await reader.history())
    async for commit in choice.candidates():
        problems = await reader.missing_objects(commit)
        if not problems:
            found = FoundCheckpoint(str(reader.store.uri_of(commit.checkpoint)), lineage, commit.name, commit)
            _print(found, choice)
            return found, None
        choice.pass_over(commit, problems[0].what)
    return None, await choice.failure()


def _print(found: FoundCheckpoint, choice: RestoreChoice) -> None:
    commit = found.commit
    step = "" if commit.step is None else str(commit.step)
    row = (found.lineage, found.name, step, str(commit.sequence), format_bytes(commit.bytes))
    print_table(found.uri, ("lineage", "checkpoint", "step", "commit", "size"), [row])
    for one in choice.passed_over:
        print_line(f"passed over: {one.name}: {one.reason}")

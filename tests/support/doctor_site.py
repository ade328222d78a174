"""Diagnoses for tests: the findings by the names of their checks."""

import itertools

from podferry.contract.uri import parse_uri
from podferry.storage.doctor.diagnosis import diagnose
from podferry.storage.doctor.finding import Finding, Outcome
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig

NOTHING = StoreConfig()
COUNTER = itertools.count()


def unused() -> str:
    """A directory in memory that nothing else uses."""
    return f"memory://doctor-{next(COUNTER)}/data"


async def findings(uri: str, config: StoreConfig = NOTHING, *, write: bool = False) -> dict[str, Finding]:
    """What a diagnosis finds, in its order."""
    return {one.check: one async for one in diagnose(parse_uri(uri), config, write=write)}


def outcomes(found: dict[str, Finding]) -> dict[str, Outcome]:
    """How each check ended."""
    return {check: one.outcome for check, one in found.items()}


async def fill(uri: str, config: StoreConfig = NOTHING) -> None:
    """Write a small file and one of several pieces."""
    store = open_store(parse_uri(uri), config)
    await store.write("d/a", b"x" * 1000)
    await store.write("d/b", b"y" * 9_000_000)
    await store.close()

import pytest

from podferry.contract.errors import AccessDenied, Refused
from podferry.contract.status import CheckpointStatus
from podferry.storage.memory.store import Fault, MemoryStore
from podferry.storage.store import WriteMode


async def test_a_missing_directory_is_refused_with_the_command_that_makes_it(any_rig, work):
    any_rig.root.rmdir()
    with pytest.raises(Refused, match="mkdir -p"):
        await work().plan()


async def test_plan_fails_if_the_destination_is_not_writable(any_rig, work):
    any_rig.faults.append(Fault("write", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await work().plan()


async def test_plan_fails_if_the_destination_ignores_the_condition_of_a_create(any_rig, work, monkeypatch):
    write = MemoryStore.write

    async def careless(self, name, body, mode=WriteMode.OVERWRITE):
        await write(self, name, body)

    monkeypatch.setattr(MemoryStore, "write", careless)
    with pytest.raises(Refused, match="replaces an object that it should only create"):
        await work().plan()


async def test_plan_may_be_repeated(work):
    """A worker that restarts before training finds the record of its first life."""
    await work().plan()
    await work().plan()


def test_the_status_shows_the_destination(work):
    made = work()
    assert made._state.status.checkpoints == CheckpointStatus("memory://rig/base", "/seen", "run")

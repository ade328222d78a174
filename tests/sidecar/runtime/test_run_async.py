import asyncio
from contextvars import ContextVar

import pytest

from podferry.sidecar.runtime.run_async import run_async

CALLER = ContextVar("CALLER", default="")


async def found():
    await asyncio.sleep(0)
    return CALLER.get()


async def failing():
    raise ValueError("no")


def test_it_runs_without_a_loop():
    assert run_async(found()) == ""
    with pytest.raises(ValueError, match="no"):
        run_async(failing())


async def test_it_runs_where_a_loop_runs_with_the_same_context():
    CALLER.set("cell")
    assert run_async(found()) == "cell"
    with pytest.raises(ValueError, match="no"):
        run_async(failing())

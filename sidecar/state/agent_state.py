"""What the agent knows about itself, and who waits for it to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podferry.contract.api import Gate
from podferry.contract.errors import FerryError, TemporaryError
from podferry.contract.quantity import format_bytes
from podferry.contract.status import AgentPhase, Status


class AgentState:
    """The agent's status; every change of it goes through `changed`, which wakes the waiters."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self._opened: Gate | None = None
        self._wakers: set[asyncio.Event] = set()

    def changed(self) -> None:
        """Wake everybody who waits for a condition."""
        for waker in self._wakers:
            waker.set()

    def enter(self, stage: AgentPhase) -> None:
        """Go on to a stage."""
        self.status.stage = stage
        self.changed()

    def refuse(self, error: FerryError) -> None:
        """Say why training will never start."""
        self.status.problems = error.problems
        self.status.retryable = isinstance(error, TemporaryError)
        self.enter(AgentPhase.REFUSED)

    def open_gate(self, gate: Gate) -> None:
        """Let training start."""
        self._opened = gate
        self.enter(AgentPhase.OPEN)

    def gate(self) -> Gate:
        """The gate as it is now."""
        if self.status.stage is AgentPhase.REFUSED:
            return Gate(open=False, problems=self.status.problems, retryable=self.status.retryable)
        return self._opened or Gate(open=False, summary=f"{self.status.stage}: {self._progress()}")

    def _progress(self) -> str:
        listed = [dataset for dataset in self.status.datasets if dataset.files]
        if not listed:
            return "not listed yet"
        files = f"{sum(one.files_done for one in listed):,} of {sum(one.files for one in listed):,} files"
        done, total = sum(one.bytes_done for one in listed), sum(one.bytes for one in listed)
        return f"{files}, {format_bytes(done)} of {format_bytes(total)}"

    async def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until `condition` holds, at most `seconds`; whether it does."""
        waker = asyncio.Event()
        self._wakers.add(waker)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await waker.wait()
                    waker.clear()
        except TimeoutError:
            pass
        finally:
            self._wakers.discard(waker)
        return condition()

"""The agent's status and gate, and the tasks that wait for them to change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from podferry.contract.errors import FerryError, TemporaryError
from podferry.contract.http_api import Gate
from podferry.contract.quantity import format_bytes
from podferry.contract.status import AgentPhase, Status


class AgentState:
    """The agent's status. Each change is followed by a `notify`."""

    def __init__(self, status: Status) -> None:
        self.status = status
        self._opened: Gate | None = None
        self._waiters: set[asyncio.Event] = set()

    def notify(self) -> None:
        """Wake all tasks that wait for a condition."""
        for waiter in self._waiters:
            waiter.set()

    def transition(self, phase: AgentPhase) -> None:
        """Enter a phase."""
        self.status.phase = phase
        self.notify()

    def fail(self, error: FerryError) -> None:
        """Record why training will never start."""
        self.status.problems = error.problems
        self.status.retryable = isinstance(error, TemporaryError)
        self.transition(AgentPhase.REFUSED)

    def open_gate(self, gate: Gate) -> None:
        """Let training start."""
        self._opened = gate
        self.transition(AgentPhase.OPEN)

    def gate(self) -> Gate:
        """The current gate."""
        if self.status.phase is AgentPhase.REFUSED:
            return Gate(open=False, problems=self.status.problems, retryable=self.status.retryable)
        return self._opened or Gate(open=False, summary=f"{self.status.phase}: {self._progress()}")

    def _progress(self) -> str:
        listed = [dataset for dataset in self.status.datasets if dataset.files]
        if not listed:
            return "not listed yet"
        files = f"{sum(one.files_done for one in listed):,} of {sum(one.files for one in listed):,} files"
        done, total = sum(one.bytes_done for one in listed), sum(one.bytes for one in listed)
        return f"{files}, {format_bytes(done)} of {format_bytes(total)}"

    async def wait_for(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Wait until `condition` holds, at most `seconds`; return whether it does."""
        waiter = asyncio.Event()
        self._waiters.add(waiter)
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    await waiter.wait()
                    waiter.clear()
        except TimeoutError:
            pass
        finally:
            self._waiters.discard(waiter)
        return condition()

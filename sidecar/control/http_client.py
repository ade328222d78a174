"""Asks an agent. Small and blocking: the gate and untouched trainers load nothing more."""

from __future__ import annotations

import http.client
import time
from collections.abc import Iterator
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from podferry.contract.api import (
    DONE_PATH,
    DURABLE_PATH,
    GATE_PATH,
    MAX_WAIT_SECONDS,
    STATUS_PATH,
    Durability,
    Gate,
    Marked,
)
from podferry.contract.errors import Unavailable
from podferry.contract.status import Status

T = TypeVar("T")
PAUSE = 0.2
"""Seconds between two tries to reach an agent that is starting, or starting again."""
SLACK = 10.0
"""Seconds beyond its wait that an answer may take."""
PATIENCE = 30.0
"""Seconds from the first failure on in which an agent may start again: the supervisor's longest pause, and
the 20 s that a worker needed to start on a crowded node."""


class AgentClient:
    """The agent at a URL such as `http://127.0.0.1:8471`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._host = urlsplit(url).netloc

    def status(self) -> Status:
        """Everything that the agent tells.

        Raises:
            Unavailable: It does not answer.
        """
        return self._ask("GET", STATUS_PATH, Status)

    def gates(self, wait: float = MAX_WAIT_SECONDS) -> Iterator[Gate]:
        """What the gate says, again and again, each answer at the latest after `wait` seconds."""
        while True:
            yield self._ask("GET", f"{GATE_PATH}?wait={wait}", Gate, wait)

    def durable(
        self, timeout: float, *, final: bool = False, ending: bool = False, exit_code: int | None = None
    ) -> Durability:
        """Wait until all that is in the checkpoint directory now is durable, at most `timeout` seconds.

        Returns at once where nothing that is pending can become durable by waiting.

        Args:
            timeout: Seconds.
            final: Nobody writes any more: files need not be quiet for a while to count as complete.
            ending: The pod ends: the newest checkpoint goes first from now on.
            exit_code: What the trainer ended with, where it is known.

        Raises:
            Unavailable: The agent does not answer.
        """
        deadline = time.monotonic() + timeout
        while True:
            wait = max(min(deadline - time.monotonic(), MAX_WAIT_SECONDS), 0.0)
            query = {"wait": f"{wait:.3f}", "final": str(final).lower(), "ending": str(ending).lower()}
            query |= {} if exit_code is None else {"exit": str(exit_code)}
            answer = self._ask("POST", f"{DURABLE_PATH}?{urlencode(query)}", Durability, wait)
            if answer.durable or answer.hopeless or time.monotonic() >= deadline:
                return answer

    def done(self, checkpoint: str) -> Marked:
        """Say that a checkpoint is whole as it lies there.

        Args:
            checkpoint: Its name, or its step.

        Raises:
            Unavailable: The agent does not answer.
        """
        return self._ask("POST", f"{DONE_PATH}?{urlencode({'checkpoint': checkpoint})}", Marked)

    def _ask(self, method: str, path: str, kind: type[T], wait: float = 0.0) -> T:
        """One question; an agent that is not there yet, or is being started again, is waited for."""
        deadline: float | None = None
        while True:
            connection = http.client.HTTPConnection(self._host, timeout=wait + SLACK)
            try:
                connection.request(method, path)
                return msgspec.json.decode(connection.getresponse().read(), type=kind)
            except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
                # Counted from the failure: a worker may be killed late in a long wait.
                deadline = deadline or time.monotonic() + PATIENCE
                if time.monotonic() >= deadline:
                    what = f"the podferry agent at {self.url} does not answer"
                    raise Unavailable.of(what, str(error), "Look at its log") from error
            finally:
                connection.close()
            time.sleep(PAUSE)

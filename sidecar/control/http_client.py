"""A client of the agent's API. Small and blocking: the gate and the trainer load nothing more."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlencode, urlsplit

import msgspec

from podferry.contract import http_api
from podferry.contract.errors import Unavailable
from podferry.contract.http_api import Durability, Gate, Marked
from podferry.contract.status import Status

T = TypeVar("T")
RETRY_SECONDS = 0.2
"""Between two attempts to reach an agent that is starting or restarting."""
SHORTEST_SECONDS = 0.1
"""Of a wait that continues another one: the answer to a shorter one would know less, without a scan."""
RESPONSE_SECONDS = 10.0
"""For a response, in addition to its wait."""
RESTART_SECONDS = 30.0
"""For a restart, from the first failure: the supervisor's longest pause, plus the 20 s that a worker needed
to start on a crowded node."""


class AgentClient:
    """The agent at a URL such as `http://127.0.0.1:8471`."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._host = urlsplit(url).netloc

    def status(self) -> Status:
        """The agent's status; raises `Unavailable` if it does not answer."""
        return self._request("GET", http_api.STATUS_PATH, Status)

    def gate(self, wait: float = http_api.MAX_WAIT_SECONDS) -> Gate:
        """The gate once it is open or refused, or after `wait` seconds."""
        return self._request("GET", f"{http_api.GATE_PATH}?wait={wait}", Gate, wait)

    def wait_for_gate(
        self,
        on_progress: Callable[[Gate], None] = lambda gate: None,
        every: float = http_api.MAX_WAIT_SECONDS,
    ) -> Gate:
        """The gate once it is open or refused; until then, calls `on_progress` every `every` seconds."""
        while not ((gate := self.gate(every)).open or gate.problems):
            on_progress(gate)
        return gate

    def wait_durable(
        self,
        timeout: float,
        *,
        final: bool = False,
        ending: bool = False,
        exit_code: int | None = None,
        interrupted: bool = False,
    ) -> Durability:
        """Wait until everything now in the checkpoint directory is durable, at most `timeout` seconds.

        Returns at once if waiting cannot make anything pending durable.

        Args:
            timeout: Seconds.
            final: Nothing writes any more: files need not be quiet for a while to count as complete.
            ending: The pod is ending: from now on, the newest checkpoint goes first.
            exit_code: Of the trainer, if known.
            interrupted: The exit code proves no success.

        Raises:
            Unavailable: The agent does not answer.
        """
        deadline = time.monotonic() + timeout
        while True:
            wait = max(min(deadline - time.monotonic(), http_api.MAX_WAIT_SECONDS), 0.0)
            query = {"wait": f"{wait:.3f}", "final": str(final).lower(), "ending": str(ending).lower()}
            query |= {} if exit_code is None else {"exit": str(exit_code)}
            query |= {"interrupted": "true"} if interrupted else {}
            answer = self._request("POST", f"{http_api.DURABLE_PATH}?{urlencode(query)}", Durability, wait)
            if answer.durable or answer.hopeless or deadline - time.monotonic() < SHORTEST_SECONDS:
                return answer

    def mark_done(self, checkpoint: str) -> Marked:
        """Mark a checkpoint as complete in its current state.

        Args:
            checkpoint: Its name or its step.

        Raises:
            Unavailable: The agent does not answer.
        """
        return self._request("POST", f"{http_api.DONE_PATH}?{urlencode({'checkpoint': checkpoint})}", Marked)

    def _request(self, method: str, path: str, kind: type[T], wait: float = 0.0) -> T:
        """Send one request; wait for an agent that is starting or restarting."""
        deadline: float | None = None
        while True:
            connection = http.client.HTTPConnection(self._host, timeout=wait + RESPONSE_SECONDS)
            try:
                connection.request(method, path)
                return msgspec.json.decode(connection.getresponse().read(), type=kind)
            except (OSError, http.client.HTTPException, msgspec.DecodeError) as error:
                # From the first failure: a worker may be killed late in a long wait.
                deadline = deadline or time.monotonic() + RESTART_SECONDS
                if time.monotonic() >= deadline:
                    what = f"the podferry agent at {self.url} does not answer"
                    raise Unavailable.of(what, _reason(error), "Look at its log") from error
            finally:
                connection.close()
            time.sleep(RETRY_SECONDS)


def _reason(error: Exception) -> str:
    """Without the error's number, which says nothing to people."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error) or type(error).__name__

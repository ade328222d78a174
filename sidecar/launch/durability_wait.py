"""The wait of `podferry run` and `ferry` at their end, so that what they report is true when they return.

    until the limit                        ends earlier if all is durable, or if waiting cannot help
    after a limit below the grace period   the agent continues alone
    after a longer limit                   one grace period more, newest checkpoint first
    after Ctrl-C                           a last look of `podferry run`; the agent continues alone

So a limit is exceeded by itself at most, and the end of a container does not take what the agent can
still save.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from podferry.contract.errors import Problem, Unavailable
from podferry.contract.http_api import Durability
from podferry.sidecar.launch.launch_options import GRACE_SECONDS
from podferry.sidecar.launch.local_agent import LocalAgent
from podferry.sidecar.runtime.messages import print_message, print_problems

NOTICE_SECONDS = 2.0
"""Of the wait, before it is reported."""
LOOK_SECONDS = 2.0
"""The shortest limit, which is time for a look at the directory; and that of the look after Ctrl-C."""
Request = Callable[[], Durability]


def _call(request: Request) -> Durability:
    return request()


class DurabilityWait:
    """The wait for one agent.

    Args:
        agent: It is detached if it is to continue alone.
        limit: Seconds.
        exit_code: Of the trainer; None if unknown.
        call: Calls a request to the agent; what it raises ends the wait.
        interrupted: The exit code proves no success.
    """

    def __init__(
        self,
        agent: LocalAgent,
        limit: float,
        exit_code: int | None,
        call: Callable[[Request], Durability] = _call,
        *,
        interrupted: bool = False,
    ) -> None:
        self._agent, self._exit_code, self._call = agent, exit_code, call
        self._limit = max(limit, LOOK_SECONDS)
        self._interrupted = interrupted

    def run(self) -> Durability:
        """Wait; what is durable now."""
        try:
            answer = self._until_limit()
            return answer if _is_final(answer) else self._after_limit(answer)
        except Unavailable as error:
            return self.unknown(error.problems)

    def look(self) -> Durability:
        """What is durable now, for the time of a look."""
        try:
            return self._ask(LOOK_SECONDS)
        except Unavailable as error:
            return self.unknown(error.problems)

    def unknown(self, problems: tuple[Problem, ...] = ()) -> Durability:
        """What the agent's journal does not show as durable; the agent was not asked or did not answer."""
        return Durability(durable=False, pending=self._agent.not_durable(), problems=problems)

    def _until_limit(self) -> Durability:
        started_at = time.monotonic()
        answer = self._ask(min(self._limit, NOTICE_SECONDS))
        left = self._limit - (time.monotonic() - started_at)
        if _is_final(answer) or left <= 0:
            return answer
        wait = f"Ctrl-C ends this wait of up to {left:.0f} s"
        print_message(f"podferry: uploading {names_of(answer)}; {wait}")
        return self._ask(left)

    def _after_limit(self, answer: Durability) -> Durability:
        if self._limit < GRACE_SECONDS:
            self._agent.detach()
            return answer
        more = f"waiting up to {GRACE_SECONDS:.0f} s more for the newest"
        print_message(f"podferry: after {self._limit:g} s not durable: {names_of(answer)}; {more}")
        return self._ask(GRACE_SECONDS, ending=True)

    def _ask(self, seconds: float, *, ending: bool = False) -> Durability:
        return self._call(
            lambda: self._agent.client.wait_durable(
                seconds,
                final=True,
                ending=ending,
                exit_code=self._exit_code,
                interrupted=self._interrupted,
            )
        )


def names_of(durability: Durability) -> str:
    """What is not durable, for people."""
    return ", ".join(durability.pending) or "what was written last"


def report_left(agent: LocalAgent) -> None:
    """Print what is not durable after the agent's end, or that it continues alone."""
    if agent.detached:
        later = "then `podferry leftovers ls` shows what is left"
        print_message(f"podferry: the agent continues for up to {GRACE_SECONDS:.0f} s; {later}")
    elif (left := agent.left()) is not None:
        print_problems([left])


def _is_final(answer: Durability) -> bool:
    return answer.durable or answer.hopeless

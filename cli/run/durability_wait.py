"""The wait of `podferry run` at its end, so that what it reports is true when it returns.

    until the limit, `--durable-timeout`   ends earlier if all is durable, or if waiting cannot help
    after a limit below the grace period   the agent continues alone
    after a longer limit                   one grace period more, newest checkpoint first
    after a signal                         a last look; the agent continues alone

So a limit is exceeded by itself at most, and the end of a container does not take what the agent can
still save.
"""

from __future__ import annotations

import time

from podferry.cli.run.signals import Interrupted, RunSignals
from podferry.contract.errors import Unavailable
from podferry.contract.http_api import Durability
from podferry.sidecar.launch.local_agent import GRACE_SECONDS, LocalAgent
from podferry.sidecar.runtime.messages import print_message

NOTICE_SECONDS = 2.0
"""Of the wait, before it is reported."""
LOOK_SECONDS = 2.0
"""The shortest limit, which is time for a look at the directory; and that of the look after a signal."""


class DurabilityWait:
    """The wait for one agent.

    Args:
        agent: It is detached if it is to continue alone.
        signals: A signal ends the wait, another one the look after it.
        limit: Seconds.
        exit_code: Of the trainer.
    """

    def __init__(self, agent: LocalAgent, signals: RunSignals, limit: float, exit_code: int) -> None:
        self._agent, self._signals, self._exit_code = agent, signals, exit_code
        self._limit = max(limit, LOOK_SECONDS)

    def run(self) -> Durability:
        """Wait; what is durable now."""
        try:
            answer = self._until_limit()
            return answer if _is_final(answer) else self._after_limit(answer)
        except Interrupted:
            self._agent.detach()
            return self._look()
        except Unavailable as error:
            return self._unknown(error)

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

    def _look(self) -> Durability:
        try:
            return self._ask(LOOK_SECONDS)
        except Interrupted:
            return self._unknown()
        except Unavailable as error:
            return self._unknown(error)

    def _ask(self, seconds: float, *, ending: bool = False) -> Durability:
        return self._signals.interruptible(
            lambda: self._agent.client.wait_durable(
                seconds, final=True, ending=ending, exit_code=self._exit_code
            )
        )

    def _unknown(self, error: Unavailable | None = None) -> Durability:
        """What the agent's journal does not show as durable; the agent was not asked or did not answer."""
        problems = () if error is None else error.problems
        return Durability(durable=False, pending=self._agent.not_durable(), problems=problems)


def names_of(durability: Durability) -> str:
    """What is not durable, for people."""
    return ", ".join(durability.pending) or "what was written last"


def _is_final(answer: Durability) -> bool:
    return answer.durable or answer.hopeless

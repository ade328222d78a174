"""The wait at the end of a run: how long it takes, who continues, and what is reported."""

from __future__ import annotations

import pytest

from podferry.contract.errors import Problem, Unavailable
from podferry.contract.http_api import Durability
from podferry.sidecar.launch.durability_wait import LOOK_SECONDS, NOTICE_SECONDS, DurabilityWait, report_left
from podferry.sidecar.launch.launch_options import GRACE_SECONDS
from tests.support.manual_clock import Clock

WAITING = Durability(durable=False, pending=("epoch-2",))
DONE = Durability(durable=True)
LOST = Durability(durable=False, pending=("epoch-2",), hopeless=True)


class Agent:
    """Answers from a list; notes what it was asked. The clock advances by what is not settled at once."""

    def __init__(self, clock, answers):
        self.client, self.detached, self.asked = self, False, []
        self._clock, self._answers = clock, iter(answers)

    def wait_durable(self, seconds, *, final, ending, exit_code, interrupted):
        assert (final, exit_code, interrupted) == (True, 3, False)
        self.asked.append((seconds, ending))
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        self._clock.now += 0 if answer.durable or answer.hopeless else seconds
        return answer

    def detach(self):
        self.detached = True

    def not_durable(self):
        return ("of the journal",)


@pytest.fixture
def wait(monkeypatch):
    """Wait with a limit and answers; the agent and the result."""
    clock = Clock()
    monkeypatch.setattr("podferry.sidecar.launch.durability_wait.time.monotonic", clock)

    def run(limit, *answers):
        agent = Agent(clock, answers)
        return agent, DurabilityWait(agent, limit, 3).run()

    return run


@pytest.mark.parametrize("answer", [DONE, LOST])
def test_what_is_decided_ends_the_wait(wait, answer, capsys):
    agent, found = wait(600.0, answer)
    assert (found, agent.asked, agent.detached) == (answer, [(NOTICE_SECONDS, False)], False)
    assert capsys.readouterr().err == ""


def test_a_limit_of_zero_is_one_look(wait):
    agent, found = wait(0.0, WAITING)
    assert (found, agent.asked, agent.detached) == (WAITING, [(LOOK_SECONDS, False)], True)


def test_a_short_limit_is_exact_and_the_agent_continues(wait, capsys):
    agent, found = wait(5.0, WAITING, WAITING)
    assert (found, agent.asked) == (WAITING, [(NOTICE_SECONDS, False), (3.0, False)])
    assert agent.detached
    assert "uploading epoch-2; Ctrl-C ends this wait of up to 3 s" in capsys.readouterr().err


@pytest.mark.parametrize("last", [DONE, WAITING])
def test_after_a_long_limit_the_last_answer_counts(wait, last, capsys):
    agent, found = wait(600.0, WAITING, WAITING, last)
    assert (found, agent.asked[-1], agent.detached) == (last, (GRACE_SECONDS, True), False)
    assert "after 600 s not durable: epoch-2; waiting up to 30 s more" in capsys.readouterr().err


def test_an_agent_that_does_not_answer_is_reported_with_the_names(wait):
    _, found = wait(600.0, Unavailable.of("no answer"))
    assert (found.durable, found.pending, len(found.problems)) == (False, ("of the journal",), 1)


def test_what_a_call_raises_ends_the_wait():
    def interrupted(request):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        DurabilityWait(Agent(Clock(), ()), 600.0, 3, interrupted).run()


def test_a_look():
    agent = Agent(Clock(), (DONE, Unavailable.of("no answer")))
    assert DurabilityWait(agent, 600.0, 3).look() == DONE
    assert agent.asked == [(LOOK_SECONDS, False)]
    assert DurabilityWait(agent, 600.0, 3).look().pending == ("of the journal",)


@pytest.mark.parametrize(
    ("detached", "left", "said"),
    [
        (True, None, "the agent continues for up to 30 s"),
        (False, Problem("1 checkpoint is left"), "1 checkpoint is left"),
        (False, None, ""),
    ],
)
def test_what_is_left_is_reported(capsys, detached, left, said):
    agent = Agent(Clock(), ())
    agent.detached, agent.left = detached, lambda: left
    report_left(agent)
    printed = capsys.readouterr().err
    assert said in printed
    assert bool(printed) == bool(said)

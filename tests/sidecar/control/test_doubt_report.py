from __future__ import annotations

import pytest

from podferry.contract.errors import Unavailable
from podferry.contract.http_api import Durability
from podferry.contract.status import CheckpointStatus, DurableCheckpoint, Status
from podferry.sidecar.control.doubt_report import doubt_report


def last(*doubts):
    made = DurableCheckpoint("step-2", 2, 2, 10, 0.0, 0.0, doubts)
    return Durability(durable=True, last=made)


class Client:
    def __init__(self, checkpoints=None):
        self._checkpoints = checkpoints

    def status(self):
        if self._checkpoints is None:
            raise Unavailable.of("the agent has ended")
        return Status(checkpoints=self._checkpoints)


@pytest.mark.parametrize("durability", [Durability(durable=True), last()])
def test_a_sure_one_and_none_at_all_are_no_problem(durability):
    assert doubt_report(durability, Client()) is None


def test_the_doubts_and_the_command_are_named():
    found = doubt_report(last("a is open", "b is small"), Client(CheckpointStatus("s3://b/k", "/p", "fit")))
    assert found is not None
    assert "step-2, is doubtful" in found.what
    assert found.measured == "a is open; b is small"
    assert "podferry checkpoints confirm s3://b/k fit step-2;" in found.remedy
    assert "podferry checkpoint done" in found.remedy


def test_an_agent_that_has_ended_is_not_asked():
    found = doubt_report(last("a is open"), Client())
    assert found is not None
    assert "confirm URI LINEAGE step-2" in found.remedy

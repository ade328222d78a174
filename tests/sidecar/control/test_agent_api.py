from __future__ import annotations

from podferry.contract.errors import Problem
from podferry.contract.http_api import Durability
from podferry.contract.status import DurableCheckpoint
from podferry.sidecar.control.agent_api import merge
from tests.support.output_site import DURABLE


def test_merged_answers():
    last = DurableCheckpoint("epoch-1", 1, 1, 9, 1.0, 2.0)
    waiting = Durability(False, ("epoch-2",), (Problem("x"),), last=last)
    hopeless = Durability(False, ("outputs (1 file)",), (Problem("y"),), hopeless=True)
    assert merge([Durability(True, last=last), DURABLE]) == Durability(True, last=last)
    assert merge([DURABLE, hopeless]) == hopeless
    both = Durability(False, ("epoch-2", "outputs (1 file)"), (Problem("x"), Problem("y")), last=last)
    assert merge([waiting, hopeless]) == both
    assert merge([]) == DURABLE

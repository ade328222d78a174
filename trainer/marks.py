"""`checkpoint_done(step)`: the trainer marks a checkpoint as complete."""

from __future__ import annotations

import os

from podferry.contract.errors import NotFound, Refused
from podferry.contract.http_api import AGENT_VARIABLE
from podferry.sidecar.control.http_client import AgentClient


def checkpoint_done(checkpoint: int | str) -> bool:
    """Mark a checkpoint, given by its name or step, as complete: all its files are written and closed.

    Returns:
        Whether there is an agent: without podferry the same code continues.

    Raises:
        NotFound: There is no such checkpoint; the error lists the existing ones.
        Refused: The checkpoint is not complete.
        Unavailable: The agent does not respond.
    """
    agent = os.environ.get(AGENT_VARIABLE)
    if not agent:
        return False
    mark(AgentClient(agent), checkpoint)
    return True


def mark(client: AgentClient, checkpoint: int | str) -> None:
    """Mark a checkpoint at an agent; raises the same errors as `checkpoint_done`."""
    answer = client.mark_done(str(checkpoint))
    (NotFound if answer.checkpoint is None else Refused).raise_any(answer.problems)

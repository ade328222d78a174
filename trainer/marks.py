"""`checkpoint_done(step)`: the trainer says that a checkpoint is whole."""

from __future__ import annotations

import os

from podferry.contract.api import AGENT_VARIABLE
from podferry.contract.errors import NotFound, Refused
from podferry.sidecar.control.http_client import AgentClient


def checkpoint_done(checkpoint: int | str) -> bool:
    """Say that all files of a checkpoint are written and closed.

    Args:
        checkpoint: Its name, or its step.

    Returns:
        Whether there is an agent: without podferry the same code trains on.

    Raises:
        NotFound: There is no such checkpoint, with those that there are.
        Refused: It is not whole all the same.
        Unavailable: The agent does not answer.
    """
    agent = os.environ.get(AGENT_VARIABLE)
    if not agent:
        return False
    mark(AgentClient(agent), checkpoint)
    return True


def mark(client: AgentClient, checkpoint: int | str) -> None:
    """Tell one agent.

    Raises:
        NotFound, Refused, Unavailable: See `checkpoint_done`.
    """
    answer = client.mark_done(str(checkpoint))
    (NotFound if answer.checkpoint is None else Refused).raise_any(answer.problems)

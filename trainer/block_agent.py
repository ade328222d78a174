"""The agent that a block of `ferry` uses: the pod's, or one of this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from podferry.contract.http_api import AGENT_VARIABLE, Durability
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.runtime.messages import print_message
from podferry.trainer.mode import Mode, describe, mode_of


@dataclass(frozen=True, slots=True)
class BlockAgent:
    """An agent that runs.

    Attributes:
        mode: Whose it is.
        client: Talks to it.
        wait: Waits until all that was written is durable, given the exit code of the training.
    """

    mode: Mode
    client: AgentClient
    wait: Callable[[int | None], Durability]


@contextmanager
def block_agent(
    options: Mapping[str, object], timeout: float, *, polling: bool, run: str | None
) -> Iterator[BlockAgent]:
    """The pod's agent, or one that ends with the block; a line says which one.

    Args:
        options: Of an agent of its own: locations and settings.
        timeout: Seconds to wait for durability.
        polling: Scan at intervals, without inotify.
        run: KFP's run id; None to find it.
    """
    mode = mode_of(os.environ, sys.argv[0])
    if not mode.own:
        client = AgentClient(os.environ[AGENT_VARIABLE])
        print_message(describe(mode, client.url))
        yield BlockAgent(mode, client, partial(_wait_in_pod, client, timeout))
        return
    from podferry.trainer import embedded  # noqa: PLC0415 - needed only without an injected agent

    with embedded.agent(options, sys.argv, polling=polling, run_id=run) as agent:
        print_message(describe(mode, agent.client.url, str(agent.run.data)))
        if mode is Mode.POD:
            from podferry.trainer.own_pod import warn_if_not_injected  # noqa: PLC0415 - only here

            warn_if_not_injected(os.environ)
        yield BlockAgent(mode, agent.client, partial(embedded.wait_durable, agent, timeout))


def _wait_in_pod(client: AgentClient, timeout: float, exit_code: int | None) -> Durability:
    return client.wait_durable(timeout, exit_code=exit_code)

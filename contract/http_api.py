"""The agent's HTTP API on loopback, version 1: paths, documents, environment.

    GET  /v1/status                 Status
    GET  /v1/gate?wait=S            Gate; responds when the gate has opened or is refused
    POST /v1/durable?wait=S&final=B Durability of everything in the checkpoint directory at the time of the
                                    call; responds when all of it is durable. `final=true`: no more writes,
                                    so files need not be quiet for a while to count as complete.
                                    `ending=true`: the pod is ending, so the newest checkpoint goes first.
                                    `exit=N`: the trainer's exit code, for the record of its outputs
    POST /v1/done?checkpoint=NAME   Marked: that checkpoint, by name or step, is complete as it is now
    GET  /metrics                   for Prometheus

Every response is 200 with a JSON document. A wait ends after S seconds with the current state: ask again.
"""

from __future__ import annotations

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.status import DurableCheckpoint

STATUS_PATH = "/v1/status"
GATE_PATH = "/v1/gate"
DURABLE_PATH = "/v1/durable"
DONE_PATH = "/v1/done"
METRICS_PATH = "/metrics"
MAX_WAIT_SECONDS = 25.0
"""Seconds that one request may wait: below the idle time-outs of common proxies."""

AGENT_VARIABLE = "PODFERRY_AGENT"
DATASET_VARIABLE = "PODFERRY_DATASET"
CHECKPOINTS_VARIABLE = "PODFERRY_CHECKPOINTS"
OUTPUTS_VARIABLE = "PODFERRY_OUTPUTS"
RESTORED_VARIABLE = "PODFERRY_RESTORED"
RESTORED_FILE_VARIABLE = "PODFERRY_RESTORED_FILE"
"""A file that holds the value of `RESTORED_VARIABLE`: a pod's variables are set before that is known."""
LINEAGE_VARIABLE = "PODFERRY_LINEAGE"
SPEC_VARIABLE = "PODFERRY_SPEC"


class Gate(msgspec.Struct, frozen=True):
    """Whether training may start.

    Attributes:
        open: The data is complete and the checkpoint restored.
        problems: Why it will not open; empty while it may.
        retryable: Whether a new pod may succeed: the store did not respond, rather than refuse.
        environment: Variables for the trainer (`PODFERRY_DATASET`, …), once open.
        summary: One line for people.
    """

    open: bool
    problems: tuple[Problem, ...] = ()
    retryable: bool = False
    environment: dict[str, str] = {}
    summary: str = ""


class Marked(msgspec.Struct, frozen=True):
    """The response to a mark.

    Attributes:
        checkpoint: The name of the marked checkpoint, or None if there is none of that name.
        problems: Why it is not complete anyway, or what is there instead.
    """

    checkpoint: str | None = None
    problems: tuple[Problem, ...] = ()


class Durability(msgspec.Struct, frozen=True):
    """Whether the requested checkpoints are durable.

    Attributes:
        durable: All of them are.
        pending: Names of checkpoints that are not yet durable.
        problems: Failures of pending ones so far.
        hopeless: No pending one can become durable by waiting.
        last: The newest durable checkpoint.
    """

    durable: bool
    pending: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    hopeless: bool = False
    last: DurableCheckpoint | None = None

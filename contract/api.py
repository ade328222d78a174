"""The agent's HTTP API on loopback, version 1: paths, documents, environment, exit codes.

    GET  /v1/status                 Status
    GET  /v1/gate?wait=S            Gate; answers when the gate has opened or is refused
    POST /v1/durable?wait=S&final=B Durability of all that was in the checkpoint directory when the call came;
                                    answers when all of it is durable. `final=true` says that nobody writes
                                    any more: files need not be quiet for a while to count as complete.
                                    `ending=true` says that the pod ends: the newest goes first from now on.
                                    `exit=N` is what the trainer ended with, for the record of its outputs
    POST /v1/done?checkpoint=NAME   Marked: that checkpoint, by its name or step, is whole as it lies there
    GET  /metrics                   for Prometheus

Every answer is 200 with a JSON document. A wait ends after S seconds with what is true then: ask again.
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
SPEC_VARIABLE = "PODFERRY_SPEC"

EXIT_NEVER = 78
"""The gate's exit code for what will never work, EX_CONFIG of sysexits.h: a podFailurePolicy can name it."""
EXIT_NOT_DURABLE = 74
"""`podferry run` where training succeeded and its last checkpoint is not durable, EX_IOERR of sysexits.h."""


class Gate(msgspec.Struct, frozen=True):
    """Whether training may start.

    Attributes:
        open: The data is whole and the checkpoint restored.
        problems: Why it will not open; empty while it may.
        retryable: Whether a new pod may fare better: the store did not answer, rather than refused.
        environment: What the trainer should see (`PODFERRY_DATASET`, …), once open.
        summary: One line for people.
    """

    open: bool
    problems: tuple[Problem, ...] = ()
    retryable: bool = False
    environment: dict[str, str] = {}
    summary: str = ""


class Marked(msgspec.Struct, frozen=True):
    """The answer to a mark.

    Attributes:
        checkpoint: The name of the checkpoint that was marked, None where none is called so.
        problems: Why it is not whole all the same, or what lies there instead.
    """

    checkpoint: str | None = None
    problems: tuple[Problem, ...] = ()


class Durability(msgspec.Struct, frozen=True):
    """Whether what was asked for is durable.

    Attributes:
        durable: All of it is.
        pending: Names of checkpoints that are not, yet.
        problems: Why not, for those that failed so far.
        hopeless: None of those that are pending can become durable by waiting.
        last: The newest durable checkpoint.
    """

    durable: bool
    pending: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    hopeless: bool = False
    last: DurableCheckpoint | None = None

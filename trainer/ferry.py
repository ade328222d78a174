"""`with ferry(...) as f`: the dataset is a path, and checkpoints are durable when the block ends.

In a pod with an injected agent it uses that agent; elsewhere it starts one. Both behave the same, and a line
says which one it is: `podferry.trainer.mode`.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podferry.contract.errors import InvalidSpec, PermanentError, Problem, TemporaryError, Unavailable
from podferry.contract.exit_codes import EXIT_DOUBTFUL, EXIT_NOT_DURABLE
from podferry.contract.http_api import (
    CHECKPOINTS_VARIABLE,
    DATASET_VARIABLE,
    OUTPUTS_VARIABLE,
    RESTORED_VARIABLE,
    Durability,
    Gate,
)
from podferry.contract.quantity import parse_timeout
from podferry.contract.status import DurableCheckpoint, Status
from podferry.sidecar.control.doubt_report import doubt_report
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.progress_bar import prefetch_bars
from podferry.trainer.arguments import (
    FUNCTION_FLAG,
    Artifact,
    Location,
    argument_problems,
    disagreements,
    located,
)
from podferry.trainer.block_agent import block_agent
from podferry.trainer.marks import mark
from podferry.trainer.mode import Mode

PLACES = ("dataset", "checkpoints", "outputs")
"""Keywords that are locations."""
Value = str | int | os.PathLike[str] | Sequence[str] | None


class NotDurableError(PermanentError):
    """Training has ended, and one of its checkpoints is not durable.

    Attributes:
        exit_code: That of `podferry run` in this case.
    """

    exit_code = EXIT_NOT_DURABLE


class DoubtfulError(PermanentError):
    """Training has ended, everything is durable, and nothing proves that the last checkpoint is complete.

    Attributes:
        exit_code: That of `podferry run` in this case.
    """

    exit_code = EXIT_DOUBTFUL


@dataclass(frozen=True, slots=True)
class Ferry:
    """The directories of a training run.

    Attributes:
        dataset: Directory of the unnamed dataset, completely staged; None if none was requested.
        checkpoints: Directory to write checkpoints to; None if no destination was requested.
        restored: The checkpoint to resume from: a file, a directory, or the stem that its files share; None
            for a fresh start.
        outputs: Directory to write outputs to; None if no destination was requested.
        datasets: Directories of the named datasets, by name.
        mode: Whose agent it is.
    """

    dataset: Path | None
    checkpoints: Path | None
    restored: Path | None
    outputs: Path | None
    datasets: Mapping[str, Path]
    mode: Mode
    _client: AgentClient

    def status(self) -> Status:
        """Everything that the agent reports."""
        return self._client.status()

    def done(self, checkpoint: int | str) -> None:
        """Mark a checkpoint, given by its name or step, as complete: its files are written and closed.

        Raises:
            NotFound: There is no such checkpoint; the error lists the existing ones.
            Refused: The checkpoint is not complete.
        """
        mark(self._client, checkpoint)

    def wait_durable(self, timeout: float = 600.0, *, final: bool = False) -> DurableCheckpoint | None:
        """Wait until all that is now in the checkpoint directory is durable; return the newest durable one.

        It may be doubtful: then its `doubts` say why. A later save may prove it.

        Args:
            timeout: Seconds.
            final: Nothing is written any more: files count as complete without a quiet period.

        Raises:
            NotDurableError: It is not durable, with the reasons.
        """
        return _durable(lambda: self._client.wait_durable(timeout, final=final)).last


def _durable(wait: Callable[[], Durability]) -> Durability:
    """The answer of a wait if everything is durable; raises `NotDurableError` otherwise."""
    started_at = time.monotonic()
    try:
        durability = wait()
    except Unavailable as error:
        what = "what was written last is not known to be durable"
        raise NotDurableError(Problem(what), *error.problems) from error
    if not durability.durable:
        raise NotDurableError(*_reasons(durability, time.monotonic() - started_at))
    return durability


def _reasons(durability: Durability, seconds: float) -> tuple[Problem, ...]:
    waited = "it cannot become so by waiting" if durability.hopeless else f"after {seconds:.0f} s"
    what = f"not durable: {', '.join(durability.pending) or 'what was written last'}"
    return (Problem(what, waited, "See the reasons below and the agent's log"), *durability.problems)


@contextmanager
def ferry(
    dataset: Location | Artifact | Mapping[str, Location | Artifact] | None = None,
    checkpoints: Location | Artifact | None = None,
    *,
    durable_timeout: float = 600.0,
    polling: bool = False,
    run: str | None = None,
    **settings: Value | Mapping[str, Value],
) -> Iterator[Ferry]:
    """Stage a dataset and keep checkpoints durable for the block.

    The end of the block waits until the last checkpoint is durable. An exception in the block propagates;
    complete checkpoints become durable all the same.

    Args:
        dataset: URI, reference or path of the dataset, or an artifact of KFP; for several datasets, a mapping
            by name.
        checkpoints: URI or path of the destination.
        durable_timeout: Seconds to wait at the end. With an agent of its own: from 30 s on, 30 s more for
            the newest checkpoint; after a shorter wait the agent continues alone for up to 30 s.
        polling: Scan at intervals, without inotify.
        run: KFP's run id; None to find it if KFP started this process.
        **settings: Further annotations as keywords: `include`, `exclude`, `shard`, `unpack`, `dataset_path`,
            `checkpoint_path`, `restore`, `lineage`, `endpoint`, …; and the directories of credentials:
            `secret_dir`, `dataset_secret_dir`, `checkpoints_secret_dir`, `outputs_secret_dir`. A setting of
            one of several datasets is a mapping by name. `shard="auto"` takes the launcher's rank. With an
            injected agent the pod's annotations apply instead.

    Raises:
        InvalidSpec: The arguments are invalid, also `durable_timeout` and a placeholder that KFP left, or an
            injected agent has another dataset or destination.
        PermanentError: Training can never start, with all the reasons.
        TemporaryError: A store did not respond.
        NotDurableError: At the end, a checkpoint is not durable.
        DoubtfulError: At the end, nothing proves that the last checkpoint is complete.
    """
    parse_timeout(str(durable_timeout))
    options: dict[str, Any] = {"dataset": dataset, "checkpoints": checkpoints, **settings}
    options |= {name: located(options[name]) for name in PLACES if name in options}
    places = {name: options[name] for name in PLACES if name in options}
    InvalidSpec.raise_any(argument_problems(places, kfp_step=FUNCTION_FLAG in sys.argv))
    with block_agent(options, durable_timeout, polling=polling, run=run) as agent:
        gate = _open_gate(agent.client)
        if not agent.mode.own:
            status = agent.client.status()
            InvalidSpec.raise_any(disagreements(status, options["dataset"], options["checkpoints"]))
        try:
            yield _directories(agent.client, gate, agent.mode)
        except BaseException as error:  # even after Ctrl-C, complete checkpoints must not be lost
            with suppress(Unavailable):  # the block's own exception counts; what is left is reported
                agent.wait(_exit_code(error) if agent.mode.own else None)
            raise
        durability = _durable(lambda: agent.wait(0))
        if doubt := doubt_report(durability, agent.client):
            raise DoubtfulError(doubt)


def _open_gate(client: AgentClient) -> Gate:
    """The open gate, once everything is staged; raises the problems of one that never opens."""
    with prefetch_bars() as bars:
        gate = client.wait_for_gate(lambda _: bars.show(client.status()), bars.poll_seconds)
    if gate.problems:
        raise (TemporaryError if gate.retryable else PermanentError)(*gate.problems)
    return gate


def _exit_code(error: BaseException) -> int:
    """The trainer's exit code after an exception: `sys.exit()` is a success, too."""
    if not isinstance(error, SystemExit):
        return 1
    return error.code if isinstance(error.code, int) else int(error.code is not None)


def _directories(client: AgentClient, gate: Gate, mode: Mode) -> Ferry:
    return Ferry(
        dataset=_path(gate, DATASET_VARIABLE),
        checkpoints=_path(gate, CHECKPOINTS_VARIABLE),
        restored=_path(gate, RESTORED_VARIABLE),
        outputs=_path(gate, OUTPUTS_VARIABLE),
        datasets={one.name: Path(one.path) for one in client.status().datasets if one.name},
        mode=mode,
        _client=client,
    )


def _path(gate: Gate, variable: str) -> Path | None:
    return Path(gate.environment[variable]) if variable in gate.environment else None

"""`with ferry(...) as f`: the dataset as a path, checkpoints that are durable when the block is left.

In a pod with an injected agent it finds that one; anywhere else it starts its own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.api import (
    AGENT_VARIABLE,
    CHECKPOINTS_VARIABLE,
    DATASET_VARIABLE,
    OUTPUTS_VARIABLE,
    RESTORED_VARIABLE,
    Durability,
    Gate,
)
from podferry.contract.errors import InvalidSpec, PermanentError, Problem, TemporaryError
from podferry.contract.status import DurableCheckpoint, Status
from podferry.contract.uri import parse_uri
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.control.progress_bar import prefetch_bars
from podferry.trainer.marks import mark

Place = str | os.PathLike[str]
Value = str | int | os.PathLike[str] | Sequence[str] | None


class NotDurableError(PermanentError):
    """Training ended, and a checkpoint that it wrote is not durable."""


@dataclass(frozen=True, slots=True)
class Ferry:
    """What training code sees.

    Attributes:
        dataset: Directory of the dataset that has no name, whole; None where none was asked for.
        checkpoints: Directory to write checkpoints to; None where none was asked for.
        restored: What to resume from: a file, a directory, or the stem that its files share; None where
            training starts anew.
        outputs: Directory to write outputs to; None where none was asked for.
        datasets: Directories of those that have names, by these.
    """

    dataset: Path | None
    checkpoints: Path | None
    restored: Path | None
    outputs: Path | None
    datasets: Mapping[str, Path]
    _client: AgentClient

    def status(self) -> Status:
        """Everything that the agent tells."""
        return self._client.status()

    def done(self, checkpoint: int | str) -> None:
        """Say that all files of a checkpoint, named by its name or step, are written and closed.

        Raises:
            NotFound: There is no such checkpoint, with those that there are.
        """
        mark(self._client, checkpoint)

    def wait_durable(self, timeout: float = 600.0, *, final: bool = False) -> DurableCheckpoint | None:
        """Wait until all that lies in the checkpoint directory now is durable; the newest one that is.

        Args:
            timeout: Seconds.
            final: Nobody writes any more: files need not be quiet for a while to count as complete.

        Raises:
            NotDurableError: It is not, with the reasons.
        """
        answer = self._client.wait_durable(timeout, final=final)
        if not answer.durable:
            raise NotDurableError(*_reasons(answer, timeout))
        return answer.last


def _reasons(answer: Durability, timeout: float) -> tuple[Problem, ...]:
    waited = "it cannot become so by waiting" if answer.hopeless else f"after {timeout:.0f} s"
    what = f"not durable: {', '.join(answer.pending)}"
    return (Problem(what, waited, "Look at the reasons below and at the agent's log"), *answer.problems)


@contextmanager
def ferry(
    dataset: Place | Mapping[str, Place] | None = None,
    checkpoints: Place | None = None,
    *,
    durable_timeout: float = 600.0,
    polling: bool = False,
    run: str | None = None,
    **wishes: Value | Mapping[str, Value],
) -> Iterator[Ferry]:
    """Stage a dataset and keep checkpoints durable for the block.

    Leaving the block waits until the last checkpoint is durable; an exception in it is passed on, and what
    was whole is made durable all the same.

    Args:
        dataset: URI, reference or path of what to bring; a mapping brings several, by names of theirs.
        checkpoints: URI or path of the destination.
        durable_timeout: Seconds to wait at the end.
        polling: Scan in intervals even where inotify works.
        run: KFP's run id; None to find it, where KFP started this process.
        **wishes: Further annotations as keywords: `include`, `exclude`, `shard`, `unpack`, `dataset_path`,
            `checkpoint_path`, `restore`, `lineage`, `endpoint`, …. What belongs to one of several datasets
            is a mapping by their names. `shard="auto"` takes the launcher's rank. With an injected agent the
            pod's annotations count instead.

    Raises:
        InvalidSpec: Something is wrong with the arguments, or an injected agent brings something else.
        PermanentError: Training can never start, with all the reasons.
        TemporaryError: A store did not answer.
        NotDurableError: At the end, a checkpoint is not durable.
    """
    with ExitStack() as stack:
        injected = os.environ.get(AGENT_VARIABLE)
        if injected:
            client = AgentClient(injected)
        else:
            from podferry.trainer import embedded  # noqa: PLC0415 - only where there is no injected agent

            options = {"dataset": dataset, "checkpoints": checkpoints, **wishes}
            client = stack.enter_context(embedded.agent(options, sys.argv, polling=polling, run=run))
        gate = _wait(client)
        if injected:
            InvalidSpec.raise_any(_disagreements(client.status(), dataset, checkpoints))
        found = _found(client, gate)
        try:
            yield found
        except BaseException:  # whatever ended training, Ctrl-C too: what is whole must not be lost
            client.wait_durable(durable_timeout, final=not injected)
            raise
        found.wait_durable(durable_timeout, final=not injected)


def _found(client: AgentClient, gate: Gate) -> Ferry:
    return Ferry(
        dataset=_path(gate, DATASET_VARIABLE),
        checkpoints=_path(gate, CHECKPOINTS_VARIABLE),
        restored=_path(gate, RESTORED_VARIABLE),
        outputs=_path(gate, OUTPUTS_VARIABLE),
        datasets={one.name: Path(one.path) for one in client.status().datasets if one.name},
        _client=client,
    )


def _disagreements(
    status: Status, dataset: Place | Mapping[str, Place] | None, checkpoints: Place | None
) -> Iterator[Problem]:
    """Where the code asks for something else than the pod's annotations, which an injected agent follows."""
    asked = dataset if isinstance(dataset, Mapping) else {"": dataset}
    brought = {one.name: one.uri for one in status.datasets}
    pairs = [(f"dataset.{name}".rstrip("."), place, brought.get(name)) for name, place in asked.items()]
    pairs.append(("checkpoints", checkpoints, status.checkpoints.uri if status.checkpoints else None))
    for name, wanted, present in pairs:
        if wanted is not None and (present is None or _place(str(wanted)) != _place(present)):
            measured = f"asked for {wanted}, the agent has {present or 'none'}"
            remedy = f"Set podferry.io/{name} to what the code asks for, or leave it out of the code"
            yield Problem(f"the injected agent has another {name}", measured, remedy)


def _place(text: str) -> str:
    """A URI or reference without its fragment and in its canonical form."""
    return str(parse_uri(text.partition("#")[0]))


def _path(gate: Gate, variable: str) -> Path | None:
    return Path(gate.environment[variable]) if variable in gate.environment else None


def _wait(client: AgentClient) -> Gate:
    with prefetch_bars() as bars:
        for gate in client.poll_gate(bars.poll_seconds):
            if gate.open:
                return gate
            if gate.problems:
                raise (TemporaryError if gate.retryable else PermanentError)(*gate.problems)
            bars.show(client.status())
    raise AssertionError("unreachable: the client asks for ever")

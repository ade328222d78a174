"""Starts the agent as a child: what `podferry run` and `ferry` share. Pods have it as a sidecar instead.

The child is a process of its own so that it outlives a trainer that is killed, and makes what was whole
durable. It ends when this process does: its standard input is a pipe whose other end nobody else holds.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podferry.contract.annotations import read_annotations
from podferry.contract.api import SPEC_VARIABLE
from podferry.contract.errors import InvalidWish, Problem
from podferry.contract.lineage import local_lineage
from podferry.contract.spec import PREFIX, FerrySpec, encode_spec
from podferry.contract.variables import escape_variables
from podferry.sidecar.client import AgentClient
from podferry.sidecar.places import Places

MEMORY = Path("/dev/shm")  # noqa: S108 - where memory is on Linux; the directory below it is the user's own
PARTS = {"dataset": "dataset_path", "checkpoints": "checkpoint_path", "outputs": "output_path"}
"""Which option names the directory of which."""
GRACE = 30.0
"""Seconds that the agent may drain once this process has gone."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start an agent.

    Attributes:
        grace: Seconds that a drain may take.
        polling: Scan in intervals even where inotify works.
        run: KFP's run id, None outside KFP.
        quiet: Log warnings only: somebody else shows the progress.
    """

    grace: float = GRACE
    polling: bool = False
    run: str | None = None
    quiet: bool = False


class EmbeddedAgent:
    """An agent that this process has started."""

    def __init__(self, process: subprocess.Popen[bytes], url: str, places: Places) -> None:
        self.process = process
        self.url = url
        self.places = places
        self.client = AgentClient(url)
        self._left = False

    def leave(self) -> None:
        """Leave it to itself: it drains within its grace, and ends."""
        self._left = True

    def end(self, timeout: float = GRACE + 15.0) -> None:
        """Tell it to drain and end, and wait; one that does not end is killed."""
        assert self.process.stdin is not None  # noqa: S101 - it was started with a pipe
        self.process.stdin.close()
        if self._left:
            return
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def wishes(options: Mapping[str, object]) -> dict[str, str]:
    """Keyword arguments (`checkpoint_path=…`) as annotations; those that are None are left out."""
    given = {name.replace("_", "-"): value for name, value in options.items() if value is not None}
    return {PREFIX + name: str(value) for name, value in given.items()}


def local_spec(options: Mapping[str, object], command: Sequence[str], base: Path) -> FerrySpec:
    """The spec of a run on this machine.

    Args:
        options: The annotations' keys with `_` for `-`; paths may be relative.
        command: What runs: names the lineage where the options do not.
        base: Directory for what the options do not place.

    Raises:
        InvalidWish: Everything that is wrong, named as options.
    """
    given = {name: value for name, value in options.items() if value is not None}
    # An unset variable in a script would else mean the present directory.
    empty = [
        f"--{name.replace('_', '-')} is empty" for name, value in given.items() if not str(value).strip()
    ]
    InvalidWish.raise_any(Problem(what, remedy="Give it a value, or leave it out") for what in empty)
    for part, path in PARTS.items():
        if part in given:
            given[part] = _absolute(str(given[part]))
            given.setdefault(path, base / part)
        if path in given:
            given[path] = Path(str(given[path])).expanduser().absolute()
    if str(given.get("restore", "")).startswith((".", "~")):
        given["restore"] = _absolute(str(given["restore"]))
    if "checkpoints" in given or "outputs" in given:
        given.setdefault("lineage", local_lineage(command))
    try:
        spec = read_annotations({key: escape_variables(value) for key, value in wishes(given).items()})
    except InvalidWish as error:
        raise InvalidWish(*map(_as_option, error.problems)) from None
    if spec is None:
        remedy = "Give --dataset, --checkpoints, --outputs, or several of them"
        raise InvalidWish.of("neither a dataset nor a destination is given", remedy=remedy)
    return spec


def _absolute(place: str) -> str:
    """A path of local files may be relative on a command line; a URI is left as it is."""
    return place if "://" in place else str(Path(place).expanduser().absolute())


def _as_option(problem: Problem) -> Problem:
    what, remedy = (text.replace(PREFIX, "--") for text in (problem.what, problem.remedy))
    return Problem(what, problem.measured, remedy)


def private_base() -> Path:
    """A new directory of this user alone, in memory where there is some."""
    root = MEMORY if os.access(MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    return Path(tempfile.mkdtemp(prefix=f"podferry-{os.getuid()}-", dir=root))


def local_places(spec: FerrySpec, base: Path) -> Places:
    """The directories of a run on this machine; those that the user named are made below existing ones.

    What belongs to a directory of the user's lies beside it, never in it: a trainer lists it.

    Raises:
        InvalidWish: A directory's parent does not exist, which is rather a slip than a wish, or it cannot
            be made or written.
    """
    dataset = Path(spec.dataset.path) if spec.dataset else None
    checkpoints = Path(spec.checkpoints.path) if spec.checkpoints else None
    outputs = Path(spec.outputs.path) if spec.outputs else None
    named = [path for path in (dataset, checkpoints, outputs) if path is not None]
    InvalidWish.raise_any(filter(None, map(_unmade, named)))
    beside = checkpoints.with_name(checkpoints.name + ".podferry") if checkpoints else None
    return Places(
        control=base / "control",
        dataset=dataset,
        claim=dataset.with_name(dataset.name + ".podferry") if dataset else None,
        checkpoints=checkpoints,
        pins=beside / "pins" if beside else None,
        outputs=outputs,
        temporary=(base, *([beside] if beside else [])),
    )


def _unmade(path: Path) -> Problem | None:
    """Make a directory, unless it is there; why it cannot be made or written, None where it can."""
    what = f"the directory {path} cannot be made"
    if not path.parent.is_dir():
        nearest = next(parent for parent in path.parents if parent.is_dir())
        return Problem(what, f"{nearest} is the nearest that exists", f"Run `mkdir -p {path}`")
    try:
        path.mkdir(exist_ok=True)
    except OSError as error:
        return Problem(what, str(error.strerror), "Choose a place that takes writes")
    if not os.access(path, os.W_OK | os.X_OK):
        return Problem(f"the directory {path} takes no writes", remedy="Choose another, or change its mode")
    return None


def launch(
    options: Mapping[str, object],
    command: Sequence[str],
    how: LaunchOptions = LaunchOptions(),
) -> EmbeddedAgent:
    """Start an agent for a command on this machine.

    Raises:
        InvalidWish: Everything that is wrong with the options.
    """
    base = private_base()
    try:
        spec = local_spec(options, command, base)
        places = local_places(spec, base)
    except BaseException:
        shutil.rmtree(base)
        raise
    with socket.create_server(("127.0.0.1", 0)) as listener:
        environment = {**os.environ, SPEC_VARIABLE: encode_spec(spec).decode()}
        arguments = [*_flags(places, how), "--until-stdin-closes", "--listen-fd", str(listener.fileno())]
        process = subprocess.Popen(
            [sys.executable, "-m", "podferry.cli.main", "agent", *arguments],
            stdin=subprocess.PIPE,
            env=environment,
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )
        port = listener.getsockname()[1]
    return EmbeddedAgent(process, f"http://127.0.0.1:{port}", places)


def _flags(places: Places, how: LaunchOptions) -> list[str]:
    named = {
        "--control-dir": places.control,
        "--dataset-dir": places.dataset,
        "--claim-dir": places.claim,
        "--checkpoint-dir": places.checkpoints,
        "--pins-dir": places.pins,
        "--output-dir": places.outputs,
        "--run-id": how.run,
        "--grace": how.grace,
    }
    flags = [text for flag, value in named.items() if value is not None for text in (flag, str(value))]
    flags += [text for folder in places.temporary for text in ("--temporary-dir", str(folder))]
    return [
        *flags,
        *(["--polling"] if how.polling else []),
        *(["--log-level", "warning"] if how.quiet else []),
    ]

"""The ways in which images come from a store to a trainer: whole commands, staging included."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from harness import OURS
from holders import holders
from mounts import PROGRAMS, mounted
from peers import FETCHING, OURS_PROGRAM
from serving import BUCKET, Site, s5cmd

READER = str(Path(__file__).with_name("reader.py"))
PREFIX = "images"
SECOND = "podferry, second pod on the node"
"""The node's holder has the images when the clock starts: the first pod's time."""
LOCAL = "already in memory"
"""No way from a store, but where the others end: the machine's limit."""


@dataclass(frozen=True, slots=True)
class Training:
    """What a trainer does.

    Attributes:
        images: In the set.
        epochs: How often it reads all.
        batch: Images in a batch.
        step: Seconds of one.
        workers: Processes that decode.
    """

    images: int
    epochs: int
    batch: int
    step: float
    workers: int

    def words(self, source: str, target: Path) -> list[str]:
        """The trainer's command."""
        options = {
            "target": target,
            "epochs": self.epochs,
            "batch": self.batch,
            "step": self.step,
            "workers": self.workers,
        }
        flags = [word for name, value in options.items() for word in (f"--{name}", str(value))]
        return [sys.executable, READER, "train", source, *flags]


def staged_by(words: list[str], training: list[str]) -> list[str]:
    """One command after another."""
    return ["sh", "-c", f"{shlex.join(words)} >&2 && exec {shlex.join(training)}"]


def ferried(site: Site, stage: Path, words: list[str]) -> list[str]:
    """A command with its images staged by podferry."""
    options = ("--endpoint", site.endpoint, "--dataset", uri(), "--dataset-path", str(stage))
    return [OURS_PROGRAM, "run", *options, "--", *words]


def uri() -> str:
    """Of the images."""
    return f"s3://{BUCKET}/{PREFIX}"


def ways(fuse: bool) -> list[str]:
    """Their names, those that mount only where that is possible."""
    staged = [OURS, SECOND, "s5cmd, init container", "boto3, download step", "s3fs, remote"]
    return [*staged, *(PROGRAMS if fuse else ()), LOCAL]


@contextmanager
def _prepared(name: str, site: Site, folder: Path) -> Iterator[str]:
    """The URL of a holder that has the images, for a second pod; empty for other ways."""
    if name != SECOND:
        yield ""
        return
    with holders(site.endpoint, uri(), folder) as [holder]:
        holder.wait_until_complete()
        yield holder.url


def _command(
    name: str, site: Site, training: Training, folder: Path, mount: Path | None, cache: str
) -> list[str]:
    stage, target = folder / "stage", folder / "seen.json"
    if cache:
        options = ("--endpoint", site.endpoint, "--cache", cache)
        fetch = [OURS_PROGRAM, "dataset", "get", *options, uri(), str(stage)]
        return staged_by(fetch, training.words(str(stage), target))
    if name == OURS:
        return ferried(site, stage, training.words(str(stage), target))
    if name.startswith("s5cmd"):
        fetch = s5cmd(site.endpoint, "cp", f"{uri()}/*", f"{stage}/")
        return staged_by(fetch, training.words(str(stage), target))
    if name.startswith("boto3"):
        fetch = [sys.executable, FETCHING, "loop", site.endpoint, BUCKET, PREFIX, str(stage)]
        return staged_by(fetch, training.words(str(stage), target))
    if name.startswith("s3fs, "):
        return training.words(uri(), target)
    return training.words(str((mount or site.held) / PREFIX), target)


def trained(name: str, site: Site, training: Training, folder: Path) -> list[dict[str, float]]:
    """Train once; its epochs: `first`, `ended` since the start of all, `seconds`, `waited`.

    Raises:
        RuntimeError: A command failed; with the end of what it printed.
    """
    folder.mkdir()
    environment = {**os.environ, **site.environment, "AWS_ENDPOINT_URL": site.endpoint}
    with removed(folder), _prepared(name, site, folder) as cache:
        started = time.monotonic()
        mounting = mounted(name, site, folder / "mount") if name in PROGRAMS else nullcontext()
        with mounting as mount:
            words = _command(name, site, training, folder, mount, cache)
            _run(name, words, environment)
            seen = json.loads((folder / "seen.json").read_text())
    if seen["images"] != training.images:
        raise RuntimeError(f"{name} trained on {seen['images']} images, not on {training.images}")
    return list(_since(started, seen["epochs"]))


def _since(started: float, epochs: list[Mapping[str, float]]) -> Iterator[dict[str, float]]:
    """Staging counts into the first epoch: its steps waited for it as well."""
    began = started
    for epoch in epochs:
        staging = epoch["began"] - began
        yield {
            "first": epoch["first"] - started,
            "ended": epoch["ended"] - started,
            "seconds": epoch["ended"] - began,
            "waited": epoch["waited"] + staging,
        }
        began = epoch["ended"]


def _run(name: str, words: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(
        words, env=environment, start_new_session=True, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{name} ended with {done.returncode}:\n{(done.stdout + done.stderr)[-2000:]}")


@contextmanager
def removed(folder: Path) -> Iterator[None]:
    """A folder in memory is given back at the end."""
    try:
        yield
    finally:
        subprocess.run(["rm", "-rf", str(folder)], check=True)

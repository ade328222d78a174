"""The demo from end to end: store, dataset, a run that is killed, a run that resumes."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from demo.attempt import NOTEWORTHY, Attempt, Kill, Killed, follow
from demo.failure import DemoError
from demo.flow import Arguments, FlowEvent, StepBegan, StepEnded, running
from demo.images import Picture, pictures
from demo.ledger import Ledger
from demo.objects import put_objects
from demo.others import SAMPLE, Others, others
from demo.results import DURABLE_BEFORE, Plan, Story, staged
from demo.screen import Bar, Screen
from demo.store import BUCKET, environment, object_store
from podferry.contract.destination.commit import Commit
from podferry.contract.quantity import format_bytes
from podferry.pipelines.digits_events import Left, Opened, Trained
from podferry.pipelines.digits_training import STAGE_VARIABLE

DATASET = f"s3://{BUCKET}/digits"
CHECKPOINTS = f"s3://{BUCKET}/checkpoints"
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - memory on Linux; the directory below it is the demo's own
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The matrices are small: more threads than one wait for each other rather than help."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where it takes place.

    Attributes:
        plan: What is to be done.
        build: Directory of the report and the logs.
        environ: What reaches the store.
        screen: Where it is said.
        folder: In memory, for staged files: both runs share the stage, as restarts on one node do.
    """

    plan: Plan
    build: Path
    environ: Mapping[str, str]
    screen: Screen
    folder: Path

    @property
    def ledger(self) -> Ledger:
        """The commits at the destination."""
        return Ledger(CHECKPOINTS, self.environ)


def run(plan: Plan, build: Path, screen: Screen) -> Story:
    """Do all of it; the store is gone when this returns.

    Raises:
        DemoError: A part failed.
        FerryError: The store's.
    """
    began = time.time()
    build.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(build / "kfp", ignore_errors=True)
    screen.step(1, "An object store")
    with object_store() as url, TemporaryDirectory(prefix="podferry-demo-", dir=memory_folder()) as folder:
        screen.say(f"a small S3 server over files, at {url}")
        return _play(Scene(plan, build, environment(url), screen, Path(folder)), began)


def memory_folder() -> Path | None:
    """Where files are in memory, as far as the system has such a place."""
    return SHARED_MEMORY if SHARED_MEMORY.is_dir() else None


def _play(scene: Scene, began: float) -> Story:
    objects = pictures(scene.plan.images)
    put_began, put_ended = _put(scene, objects)
    scene.screen.step(3, "The same files without podferry")
    plain = _without_podferry(scene, len(objects))
    scene.screen.step(4, "The flow dataset → cache → train → verify, and a kill in the middle of training")
    kill = Kill(scene.plan.kill_in, DURABLE_BEFORE, scene.ledger)
    first, first_code = _attempt(scene, 1, kill)
    if first.killed is None:
        raise DemoError("training was not killed: it ended, or never began; the log above says why")
    committed = _commits(scene, first)
    if committed:
        scene.screen.say(
            f"the agent drained: {len(committed)} checkpoints durable, {committed[-1].name} last"
        )
    scene.screen.step(5, "The same flow again: it resumes")
    second, second_code = _attempt(scene, 2, None)
    return Story(
        plan=scene.plan,
        files=len(objects),
        bytes=sum(len(one.data) for one in objects),
        began=began,
        put_began=put_began,
        put_ended=put_ended,
        others=plain,
        attempts=(first, second),
        first=committed,
        commits=_commits(scene, second),
        codes=(first_code, second_code),
    )


def _put(scene: Scene, objects: Sequence[Picture]) -> tuple[float, float]:
    """Put the dataset into the store; when that began and ended."""
    total = sum(len(one.data) for one in objects)
    scene.screen.step(2, "A dataset")
    began = time.time()
    with scene.screen.bar("uploading", len(objects)) as bar:
        put_objects(DATASET, scene.environ, {one.name: one.data for one in objects}, bar.advance)
    ended = time.time()
    scene.screen.say(
        f"{len(objects):,} handwritten digits as PNG files, {format_bytes(total)}, "
        f"at {DATASET} in {ended - began:.1f} s"
    )
    return began, ended


def _without_podferry(scene: Scene, files: int) -> Others:
    """Read files twice with boto3: as a download before training, and as an epoch of remote reading."""
    with scene.screen.bar("reading one file after another", 2 * -(-files // SAMPLE)) as bar:
        found = others(DATASET, scene.environ, scene.folder / "downloaded", bar.advance)
    scene.screen.say(f"downloaded one after another with boto3: {found.download:.1f} s")
    scene.screen.say(f"read from the store while training: {found.epoch:.1f} s in every epoch")
    scene.screen.say(f"(measured with every {SAMPLE}th file)", "dim")
    return found


def _commits(scene: Scene, attempt: Attempt) -> list[Commit]:
    return scene.ledger.commits(attempt.opened.lineage) if attempt.opened else []


def _attempt(scene: Scene, number: int, kill: Kill | None) -> tuple[Attempt, int]:
    """Run the flow once; its events and its exit code."""
    arguments = Arguments(DATASET, CHECKPOINTS, scene.plan.epochs)
    log = scene.build / f"attempt-{number}.log"
    stage = {STAGE_VARIABLE: str(scene.folder / "dataset")}
    attempt = Attempt(number, time.time())
    with (
        scene.screen.bar("starting KFP's local runner", scene.plan.epochs) as bar,
        running(arguments, scene.build / "kfp", log, {**scene.environ, **ONE_THREAD, **stage}) as flow,
    ):
        follow(attempt, flow, kill, _event_printer(scene.screen, bar, attempt))
        code = flow.code()
    _say_end(scene.screen, attempt, code, log)
    return attempt, code


def _event_printer(screen: Screen, bar: Bar, attempt: Attempt) -> Callable[[FlowEvent | Killed], None]:
    """Prints each event as it comes."""

    def show(event: FlowEvent | Killed) -> None:
        match event:
            case StepBegan(name):
                bar.note(name)
            case StepEnded(name, succeeded):
                step = attempt.step(name)
                took = f"{step.ended - step.began:.1f} s" if step and step.ended else ""
                screen.say(f"{'✓' if succeeded else '✗'} {name}  {took}", "" if succeeded else "red")
            case Opened():
                screen.say(f"gate open: {staged(event)}")
                if event.restored:
                    screen.say(f"resuming from {event.restored}", "bold green")
            case Trained():
                bar.at(event.epoch, f"epoch {event.epoch}, loss {event.loss:.3f}")
            case Left():
                screen.say(f"all durable; accuracy {event.accuracy:.1%}, waited {event.blocked:.1f} s")
            case Killed(pid, epoch, durable, held):
                text = f"SIGKILL to process {pid}, which trains epoch {epoch}; {durable} checkpoints durable"
                screen.say(text, "bold red")
                if held > NOTEWORTHY:
                    screen.say(
                        f"it had been stopped for {held:.1f} s until enough checkpoints were durable", "dim"
                    )
                bar.note("the agent drains")
            case _:
                pass

    return show


def _say_end(screen: Screen, attempt: Attempt, code: int, log: Path) -> None:
    verdict = "succeeded" if code == 0 else "failed"
    screen.say(f"run {attempt.number} {verdict} after {attempt.ended - attempt.began:.1f} s; its log: {log}")

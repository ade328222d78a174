"""The flow on a time axis: where each bar lies. The template draws it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from demo.attempt import Attempt
from demo.results import VERIFY, Story

WIDTH, LEFT, RIGHT = 1080.0, 124.0, 16.0
TOP, LANE, BAR = 52.0, 34.0, 18.0
THIN, GAP, MARGIN = 3.0, 1.5, 6.0
"""A checkpoint's line, the room below it, and the room at the lane's edges; units of the picture's own."""
ROOM = 7.0
"""What a character takes at most."""
TICKS = 12
"""At most so many on the axis."""
NICE = (1, 2, 5, 10, 20, 30, 60, 120, 300)
LANES = ("dataset", "cache", "train", "prefetch", "restore", "epochs", "checkpoints", "verify")
STEPS: Mapping[str, str] = {"dataset": "dataset", "cache": "cache", "train": "train", VERIFY: "verify"}
"""KFP's name of a step and its lane."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the picture."""

    name: str
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A rectangle in a lane; `kind` picks its colour, `title` is shown where the pointer rests."""

    x: float
    y: float
    width: float
    height: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class Label:
    """Text next to or below what it names; `kind` picks their colour."""

    x: float
    y: float
    text: str
    kind: str = ""
    anchor: str = "start"


@dataclass(frozen=True, slots=True)
class Run:
    """The part of the axis that one run of the flow takes; `kill` is where training was killed."""

    x: float
    width: float
    text: str
    kill: float | None


@dataclass(frozen=True, slots=True)
class Picture:
    """Everything that is drawn, in the picture's coordinates."""

    width: float
    height: float
    top: float
    bottom: float
    lanes: tuple[Lane, ...]
    bars: tuple[Bar, ...]
    ticks: tuple[Label, ...]
    labels: tuple[Label, ...]
    runs: tuple[Run, ...]


@dataclass(frozen=True, slots=True)
class Canvas:
    """Seconds since the epoch and lanes to coordinates."""

    start: float
    seconds: float
    lanes: Mapping[str, Lane]

    def x(self, at: float) -> float:
        """Where a time lies."""
        return round(LEFT + (at - self.start) / self.seconds * (WIDTH - LEFT - RIGHT), 2)

    def bar(self, lane: str, began: float, ended: float, kind: str, title: str) -> Bar:
        """A bar that can be seen however short it is."""
        x = self.x(began)
        y = self.lanes[lane].y + (self.lanes[lane].height - BAR) / 2
        return Bar(x, y, max(round(self.x(ended) - x, 2), 1.6), BAR, kind, title)

    def after(self, lane: str, at: float, text: str) -> Label:
        """Words to the right of what ends at a time."""
        return Label(self.x(at) + 7, self._middle(lane), text)

    def inside(self, lane: str, began: float, ended: float, text: str) -> Label:
        """Words in the middle of a bar, to the left of one that is too short for them."""
        if self.x(ended) - self.x(began) < ROOM * len(text):
            return self.before(lane, began, text)
        return Label((self.x(began) + self.x(ended)) / 2, self._middle(lane), text, "inside", "middle")

    def before(self, lane: str, at: float, text: str) -> Label:
        """Words to the left of what begins at a time."""
        return Label(self.x(at) - 7, self._middle(lane), text, anchor="end")

    def _middle(self, lane: str) -> float:
        return self.lanes[lane].y + self.lanes[lane].height / 2 + 4.5


def picture(story: Story) -> Picture:
    """The geometry of a story; it begins with the first run of the flow."""
    start, seconds = story.attempts[0].began, story.attempts[1].ended - story.attempts[0].began
    durable = {commit.name: commit.created.timestamp() for commit in story.commits}
    lines = [uploads(attempt, durable) for attempt in story.attempts]
    lanes = _lanes(max((line.row + 1 for found in lines for line in found), default=1))
    bottom = lanes[-1].y + lanes[-1].height
    canvas = Canvas(start, seconds, {lane.name: lane for lane in lanes})
    bars, labels = [], []
    for attempt, found in zip(story.attempts, lines, strict=True):
        bars += [*_steps(attempt, canvas), *_training(attempt, canvas), *_thin(found, canvas)]
        labels += [*_labels(attempt, found, canvas)]
    return Picture(
        width=WIDTH,
        height=bottom + 28,
        top=TOP,
        bottom=bottom,
        lanes=lanes,
        bars=tuple(bars),
        ticks=tuple(_ticks(canvas, bottom + 20)),
        labels=tuple(labels),
        runs=tuple(_run(attempt, canvas) for attempt in story.attempts),
    )


def _lanes(rows: int) -> tuple[Lane, ...]:
    """The lanes below each other; that of the checkpoints is high enough for `rows` lines."""
    heights = [
        max(LANE, rows * (THIN + GAP) + 2 * MARGIN) if lane == "checkpoints" else LANE for lane in LANES
    ]
    tops = accumulate(heights, initial=TOP)
    return tuple(Lane(lane, y, height) for lane, y, height in zip(LANES, tops, heights, strict=False))


@dataclass(frozen=True, slots=True)
class Upload:
    """A checkpoint from written to durable, in a row where no other line is at that time."""

    name: str
    written: float
    durable: float
    row: int


def uploads(attempt: Attempt, durable: Mapping[str, float]) -> list[Upload]:
    """The checkpoints of an attempt in the order of writing, each in the first row that is free."""
    found: list[Upload] = []
    free: list[float] = []
    for saved in attempt.saved:
        if saved.name not in durable:
            continue
        ended = durable[saved.name]
        row = next((at for at, since in enumerate(free) if since <= saved.at), len(free))
        free[row : row + 1] = [ended]
        found.append(Upload(saved.name, saved.at, ended, row))
    return found


def _thin(lines: Sequence[Upload], canvas: Canvas) -> Iterator[Bar]:
    for line in lines:
        title = f"{line.name}: durable {line.durable - line.written:.2f} s after it was written"
        whole = canvas.bar("checkpoints", line.written, line.durable, "checkpoint", title)
        y = canvas.lanes["checkpoints"].y + MARGIN + line.row * (THIN + GAP)
        yield replace(whole, y=round(y, 2), height=THIN)


def _steps(attempt: Attempt, canvas: Canvas) -> Iterator[Bar]:
    for step in attempt.steps:
        if step.name in STEPS:
            ended = step.ended or attempt.ended
            kind = "step" if step.succeeded else "step failed"
            verdict = "succeeded" if step.succeeded else "failed"
            title = f"step {step.name}: {verdict} after {ended - step.began:.1f} s"
            yield canvas.bar(STEPS[step.name], step.began, ended, kind, title)


def _training(attempt: Attempt, canvas: Canvas) -> Iterator[Bar]:
    """Restore and prefetch before the gate opened, and the epochs after it."""
    opened = attempt.opened
    if opened is not None:
        fetched = opened.at - opened.prefetch
        yield canvas.bar("prefetch", fetched, opened.at, "prefetch", f"prefetch: {opened.prefetch:.2f} s")
        if opened.restored is not None:
            title = f"{opened.restored} restored in {opened.restore * 1000:.0f} ms"
            yield canvas.bar("restore", fetched - opened.restore, fetched, "restore", title)
    for at, epoch in enumerate(attempt.epochs):
        kind = "epoch odd" if at % 2 else "epoch"
        if epoch.ended is not None:
            title = f"epoch {epoch.name}: {epoch.ended - epoch.began:.2f} s"
            yield canvas.bar("epochs", epoch.began, epoch.ended, kind, title)
        elif attempt.killed is not None:
            stopped = attempt.killed_at - attempt.killed.held
            title = f"epoch {epoch.name}: stopped for {attempt.killed.held:.2f} s, then killed"
            yield canvas.bar("epochs", epoch.began, stopped, kind, f"epoch {epoch.name}: killed")
            yield canvas.bar("epochs", stopped, attempt.killed_at, "epoch held", title)


def _labels(attempt: Attempt, lines: Sequence[Upload], canvas: Canvas) -> Iterator[Label]:
    """Words that say what the bars mean, where there is room for them."""
    opened = attempt.opened
    if opened is not None:
        fetched = opened.at - opened.prefetch
        fresh = f"{opened.files:,} files in {opened.prefetch:.1f} s"
        text = "still in memory" if opened.kept == opened.files else fresh
        yield canvas.inside("prefetch", fetched, opened.at, text)
        if opened.restored is not None:
            yield canvas.after("restore", fetched, opened.restored)
    if attempt.epochs:
        first, last = attempt.epochs[0], attempt.epochs[-1]
        yield canvas.before("epochs", first.began, f"{first.name} to {last.name}")
    if lines:
        yield canvas.before("checkpoints", lines[0].written, f"{len(lines)} durable")
    if attempt.killed is not None:
        lane = canvas.lanes["verify"]
        yield Label(canvas.x(attempt.killed_at) + 7, lane.y + lane.height / 2 + 4.5, "SIGKILL", "bad")


def _ticks(canvas: Canvas, y: float) -> Iterator[Label]:
    wide = next((nice for nice in NICE if canvas.seconds / nice <= TICKS), NICE[-1])
    for second in range(0, int(canvas.seconds) + 1, wide):
        yield Label(canvas.x(canvas.start + second), y, f"{second} s", anchor="middle")


def _run(attempt: Attempt, canvas: Canvas) -> Run:
    x = canvas.x(attempt.began)
    killed = attempt.killed is not None
    text = f"run {attempt.number}: {'killed, then drained' if killed else 'resumed, finished'}"
    return Run(x, canvas.x(attempt.ended) - x, text, canvas.x(attempt.killed_at) if killed else None)

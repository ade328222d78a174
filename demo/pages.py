"""Writes `report.json` and `report.html`."""

from __future__ import annotations

import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2
import msgspec

from demo.attempt import NOTEWORTHY
from demo.others import SAMPLE
from demo.picture import picture
from demo.results import Report, Story, broken_promises, staged
from podferry.contract.quantity import format_bytes

TEMPLATE = "report.html.jinja"


@dataclass(frozen=True, slots=True)
class Event:
    """A line of the account. `at` is in seconds since the first run began."""

    at: float
    text: str
    kind: str = ""


def write_pages(story: Story, found: Report, imitated: Sequence[str], build: Path) -> tuple[Path, Path]:
    """Write both; their paths.

    Args:
        story: What happened.
        found: Its values.
        imitated: What was not the real thing, a sentence each.
        build: An existing directory.
    """
    values, page = build / "report.json", build / "report.html"
    values.write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=2) + b"\n")
    page.write_text(render(story, found, imitated), encoding="utf-8")
    return page, values


def render(story: Story, found: Report, imitated: Sequence[str]) -> str:
    """The page: one file that needs nothing else."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["bytes"] = format_bytes
    first, second = story.attempts
    return environment.get_template(TEMPLATE).render(
        report=found,
        waits=waits(found),
        sample=SAMPLE,
        title=title(found),
        picture=picture(story),
        account=account(story),
        imitated=imitated,
        broken=broken_promises(story, found),
        written=sum(saved.blocked for attempt in story.attempts for saved in attempt.saved),
        waited=second.left.blocked if second.left else 0.0,
        training=sum((e.ended or e.began) - e.began for a in story.attempts for e in a.epochs),
        checkpoint_bytes=max((commit.bytes for commit in story.commits), default=0),
        seconds=second.ended - story.began,
        lineage=story.commits[-1].lineage if story.commits else "",
        machine=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        when=time.strftime("%Y-%m-%d %H:%M", time.localtime(first.began)),
    )


def title(found: Report) -> str:
    """What happened."""
    if not found.killed_at:
        return "Training was to be killed and to resume"
    killed = f"Training was killed in epoch {found.killed_at}"
    return f"{killed} and resumed from {found.resumed_from}" if found.resumed_from else killed


@dataclass(frozen=True, slots=True)
class Wait:
    """How long both runs wait for their data; `share` is that of the longest, 0 to 1."""

    name: str
    seconds: float
    share: float
    note: str


def waits(found: Report) -> list[Wait]:
    """Both runs with podferry, and in the usual ways."""
    names = ("podferry", "download first", "remote reading")
    notes = (
        f"{found.prefetch_s:.2f} s before the first epoch; the second run found the files in memory",
        f"computed: 2 downloads of {found.download_first_s:.1f} s with boto3, before each run",
        f"computed: {found.epochs} epochs of {found.remote_epoch_s:.1f} s with boto3",
    )
    longest = max(*found.waits, 0.001)
    rows = zip(names, found.waits, notes, strict=True)
    return [Wait(name, seconds, seconds / longest, note) for name, seconds, note in rows]


def account(story: Story) -> list[Event]:
    """What happened, in its order."""
    start = story.attempts[0].began
    events: list[Event] = []
    for attempt in story.attempts:
        events.append(Event(attempt.began - start, f"Run {attempt.number} of the flow begins."))
        for step in attempt.steps:
            if step.ended is not None:
                verdict = "succeeds" if step.succeeded else "fails"
                text = f"Step {step.name} {verdict} after {step.ended - step.began:.1f} s."
                events.append(Event(step.ended - start, text, "" if step.succeeded else "bad"))
        if attempt.opened is not None:
            opened = attempt.opened
            whence = f"resumes from {opened.restored}" if opened.restored else "starts from the beginning"
            text = f"The gate opens: {staged(opened)}. Training {whence}."
            events.append(Event(opened.at - start, text, "good" if opened.restored else ""))
        if attempt.killed is not None:
            killed = attempt.killed
            text = f"SIGKILL in epoch {killed.epoch}. {killed.durable} checkpoints are durable."
            if killed.held > NOTEWORTHY:
                text += f" Training had been stopped for {killed.held:.1f} s until enough were."
            events.append(Event(attempt.killed_at - start, text, "bad"))
            drained = f"The agent has drained: {len(story.first)} checkpoints are durable."
            events.append(Event(attempt.ended - start, drained, "good"))
        if attempt.left is not None:
            text = (
                f"Training is done, and the last checkpoint is durable. Accuracy {attempt.left.accuracy:.1%}."
            )
            events.append(Event(attempt.left.at - start, text, "good"))
    return sorted(events, key=lambda event: event.at)

"""What annotations ask of checkpoints beyond durability: how many stay, and which count as whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod_json import SIDECAR
from tests.e2e import manifests
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.stories import Story, Told, told
from tests.e2e.trainers import COMMON

MIB = 1 << 20
KEPT = 2
SAVES = 5
ASKS = f"""{COMMON}
import urllib.parse, urllib.request

def ask(path, data=None, **query):
    url = os.environ["PODFERRY_AGENT"] + path + "?" + urllib.parse.urlencode(query)
    return urllib.request.urlopen(urllib.request.Request(url, data=data), timeout=30).read().decode()

def mark(checkpoint):
    return json.loads(ask("/v1/done", b"", checkpoint=checkpoint))

def until_durable(step):
    deadline = time.monotonic() + 90
    while step not in [one["step"] for one in json.loads(ask("/v1/status"))["checkpoints"]["durable"]]:
        assert time.monotonic() < deadline, step
        time.sleep(0.2)
"""
"""The trainer's image has no podferry: it asks the agent by HTTP."""
SAVES_AGAIN = f"""{ASKS}
for step in range(1, {SAVES + 1}):
    write(step, {MIB})
    until_durable(step)
"""
RESUMES = f"""{COMMON}
say(files={{path.name: [path.stat().st_size, chr(path.read_bytes()[0])] for path in checkpoints.iterdir()}})
"""
MARKS = f"""{ASKS}
write(1, {MIB})
write(2, {MIB})
say(marked=mark("2"))
until_durable(2)
write(2, {MIB + 1})
write(3, {MIB})
say(unknown=mark("7"))
say(marked=mark("step-3.bin"))
until_durable(3)
say(metrics=ask("/metrics"))
"""


class Ended(NamedTuple):
    """How a story has ended.

    Attributes:
        outcome: Of its pod.
        commits: Of its lineage, and their bytes by name.
        said: All that the trainer said, in order.
        found: What the pod after it found: sizes and first bytes, by name.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    said: list[dict[str, Any]]
    found: Any = None


def said(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome[TRAINER].log.splitlines()]


def trainer(space: Space, name: str, lineage: str, script: str, **values: str | int) -> Object:
    wishes = space.training(lineage=lineage) | manifests.wishes(**values)
    return pod(name, container(script=script), annotations=wishes)


def ended(space: Space, name: str, script: str, **values: str | int) -> Ended:
    outcome = space.run(trainer(space, name, name, script, **values), 150)
    commits = space.bucket.commits(name)
    return Ended(outcome, commits, [space.bucket.committed(one) for one in commits], said(outcome))


def keeps(space: Space) -> Ended:
    story = ended(space, "kept", SAVES_AGAIN, keep_remote=KEPT)
    later = space.run(trainer(space, "resumes", "kept", RESUMES, keep_remote=KEPT), 120)
    assert later.succeeded, later
    return story._replace(found=said(later)[0]["files"])


def marks(space: Space) -> Ended:
    return ended(space, "marked", MARKS, complete="marked")


STORIES: dict[str, Story[Ended]] = {"kept": keeps, "marked": marks}


@pytest.fixture(scope="module")
def stories(site: Site) -> Iterator[Told[Ended]]:
    with told(site, STORIES) as found:
        yield found


def test_so_many_commits_stay_and_nothing_of_the_others(stories: Told[Ended], site: Site) -> None:
    story = stories["kept"]
    assert story.outcome.succeeded, story.outcome
    assert [one.step for one in story.commits] == [SAVES - 1, SAVES]
    assert [one.sequence for one in story.commits] == [SAVES - 1, SAVES]
    place = "checkpoints/kept/"
    data = {key for key in site.bucket.objects(place) if not key.startswith(f"{place}.podferry/")}
    assert data == {f"{place}{file.object}" for one in story.commits for file in one.files}


def test_the_newest_one_is_whole_and_restores(stories: Told[Ended], site: Site, tmp_path: Path) -> None:
    story = stories["kept"]
    place = site.bucket.uri("checkpoints")
    verdicts = site.bucket.podferry_json("checkpoints", "verify", place, "kept", "--deep")
    assert [(one["sequence"], one["state"]) for one in verdicts] == [(SAVES, "whole"), (SAVES - 1, "whole")]
    site.bucket.podferry("checkpoints", "restore", place, "kept", "--to", str(tmp_path / "back"))
    back = {path.name: path.read_bytes() for path in (tmp_path / "back").iterdir()}
    assert back == {f"step-{SAVES}.bin": b"%d" % SAVES * MIB}
    assert story.found == {f"step-{SAVES}.bin": [MIB, str(SAVES)]}


def test_what_is_not_marked_is_never_committed(stories: Told[Ended]) -> None:
    """Neither one that was never marked, nor what a marked one became afterwards; the agent names both."""
    story = stories["marked"]
    assert story.outcome.succeeded, story.outcome
    assert [one.step for one in story.commits] == [2, 3]
    assert story.files == [{"step-2.bin": b"2" * MIB}, {"step-3.bin": b"3" * MIB}]
    sidecar = story.outcome[SIDECAR]
    assert (sidecar.exit_code, sidecar.restarts) == (0, 0)
    assert "not durable at the end: step-1, step-2" in sidecar.message


def test_a_mark_is_answered(stories: Told[Ended]) -> None:
    answers = [one for one in stories["marked"].said if "marked" in one or "unknown" in one]
    first, unknown, third = answers
    assert first == {"marked": {"checkpoint": "step-2", "problems": []}}
    assert third == {"marked": {"checkpoint": "step-3", "problems": []}}
    [problem] = unknown["unknown"]["problems"]
    assert unknown["unknown"]["checkpoint"] is None
    assert "'7'" in problem["what"]
    assert "step-1, step-2, step-3" in problem["measured"]


def test_the_trainer_can_scrape_the_metrics(stories: Told[Ended]) -> None:
    [text] = [one["metrics"] for one in stories["marked"].said if "metrics" in one]
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    found = {one.name: one.value for one in samples if not one.labels}
    assert found["podferry_checkpoints_durable_total"] == 2
    assert found["podferry_checkpoint_durable_step"] == 3
    assert found["podferry_checkpoint_sent_bytes_total"] >= 2 * MIB
    assert found["podferry_checkpoint_durable_seconds_count"] == 2
    assert [one.labels["stage"] for one in samples if one.name == "podferry_stage" and one.value] == ["open"]

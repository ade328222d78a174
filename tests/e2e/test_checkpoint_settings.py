"""Annotations for checkpoints: how many stay at the destination, and which are complete."""

from __future__ import annotations

import errno
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from podferry.contract.destination.commit import Commit
from podferry.webhook.pod.pod_json import SIDECAR
from tests.e2e import manifests
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenario, Scenarios, start_scenarios
from tests.e2e.site import Site
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
    deadline = time.monotonic() + 450
    while step not in [one["step"] for one in json.loads(ask("/v1/status"))["checkpoints"]["durable"]]:
        assert time.monotonic() < deadline, step
        time.sleep(0.2)
"""
"""The trainer's image has no podferry: it asks the agent by HTTP."""
STARTS = """
def start():
    file = pathlib.Path(os.environ["PODFERRY_RESTORED_FILE"])
    try:
        file.write_text("another")
    except OSError as error:
        say(lineage=os.environ["PODFERRY_LINEAGE"], lines=file.read_text().splitlines(), error=error.errno)
"""
"""`start()` says what the trainer resumes from, which it may not change."""
SAVES_AGAIN = f"""{ASKS}{STARTS}
start()
for step in range(1, {SAVES + 1}):
    write(step, {MIB})
    until_durable(step)
"""
RESUMES = f"""{COMMON}{STARTS}
start()
say(files={{path.name: [path.stat().st_size, chr(path.read_bytes()[0])] for path in checkpoints.iterdir()}})
"""
MARKS = f"""{ASKS}
write(1, {MIB})
write(2, {MIB})
say(marked=mark("2"))
until_durable(2)
write_in_place(2, {MIB + 1})
write(3, {MIB})
say(unknown=mark("7"))
say(marked=mark("step-3.bin"))
until_durable(3)
say(metrics=ask("/metrics"))
"""


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        outcome: Of its pod.
        commits: Of its lineage, and their bytes by name.
        printed: What the trainer printed, in order.
        found: What the pod after it printed; last, the sizes and first bytes that it found, by name.
    """

    outcome: Outcome
    commits: list[Commit]
    files: list[dict[str, bytes]]
    printed: list[dict[str, Any]]
    found: Any = None


def log_entries(outcome: Outcome) -> list[dict[str, Any]]:
    return [json.loads(line) for line in outcome[TRAINER].log.splitlines()]


def trainer(namespace: Namespace, name: str, lineage: str, script: str, **values: str | int) -> Object:
    annotations = namespace.training_annotations(lineage=lineage) | manifests.podferry_annotations(**values)
    return pod(name, container(script=script), annotations=annotations)


def collect_result(namespace: Namespace, name: str, script: str, **values: str | int) -> Result:
    outcome = namespace.run(trainer(namespace, name, name, script, **values), 150)
    commits = namespace.bucket.commits(name)
    return Result(
        outcome, commits, [namespace.bucket.committed(one) for one in commits], log_entries(outcome)
    )


def keeps(namespace: Namespace) -> Result:
    result = collect_result(namespace, "kept", SAVES_AGAIN, keep_remote=KEPT)
    later = namespace.run(trainer(namespace, "resumes", "kept", RESUMES, keep_remote=KEPT), 120)
    assert later.succeeded, later
    return result._replace(found=log_entries(later))


def marks(namespace: Namespace) -> Result:
    return collect_result(namespace, "marked", MARKS, complete="marked")


SCENARIOS: dict[str, Scenario[Result]] = {"kept": keeps, "marked": marks}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    with start_scenarios(site, SCENARIOS) as found:
        yield found


def test_keep_remote_removes_older_commits_and_their_data(results: Scenarios[Result], site: Site) -> None:
    result = results["kept"]
    assert result.outcome.succeeded, result.outcome
    assert [one.step for one in result.commits] == [SAVES - 1, SAVES]
    assert [one.sequence for one in result.commits] == [SAVES - 1, SAVES]
    place = "checkpoints/kept/"
    data = {key for key in site.bucket.objects(place) if not key.startswith(f"{place}.podferry/")}
    assert data == {f"{place}{file.object}" for one in result.commits for file in one.files}


def test_the_newest_commit_verifies_and_restores(
    results: Scenarios[Result], site: Site, tmp_path: Path
) -> None:
    result = results["kept"]
    place = site.bucket.uri("checkpoints")
    verdicts = site.bucket.podferry_json("checkpoints", "verify", place, "kept", "--deep")
    assert [(one["sequence"], one["state"]) for one in verdicts] == [(SAVES, "intact"), (SAVES - 1, "intact")]
    site.bucket.podferry("checkpoints", "restore", place, "kept", "--to", str(tmp_path / "back"))
    back = {path.name: path.read_bytes() for path in (tmp_path / "back").iterdir()}
    assert back == {f"step-{SAVES}.bin": b"%d" % SAVES * MIB}
    assert result.found[-1]["files"] == {f"step-{SAVES}.bin": [MIB, str(SAVES)]}


def test_the_trainer_finds_its_lineage_and_what_it_resumes_from(results: Scenarios[Result]) -> None:
    fresh, resumed = results["kept"].printed[0], results["kept"].found[0]
    assert fresh == {"lineage": "kept", "lines": [], "error": errno.EROFS}
    restored = f"/dev/shm/checkpoints/step-{SAVES}.bin"
    assert resumed == {"lineage": "kept", "lines": [restored], "error": errno.EROFS}


def test_what_is_not_marked_is_never_committed(results: Scenarios[Result]) -> None:
    """Neither an unmarked one nor later changes of a marked one; the agent names both."""
    result = results["marked"]
    assert result.outcome.succeeded, result.outcome
    assert [one.step for one in result.commits] == [2, 3]
    assert result.files == [{"step-2.bin": b"2" * MIB}, {"step-3.bin": b"3" * MIB}]
    sidecar = result.outcome[SIDECAR]
    assert (sidecar.exit_code, sidecar.restarts) == (0, 0)
    assert "not durable at the end: step-1, step-2" in sidecar.message


def test_a_mark_gets_a_response(results: Scenarios[Result]) -> None:
    answers = [one for one in results["marked"].printed if "marked" in one or "unknown" in one]
    first, unknown, third = answers
    assert first == {"marked": {"checkpoint": "step-2", "problems": []}}
    assert third == {"marked": {"checkpoint": "step-3", "problems": []}}
    [problem] = unknown["unknown"]["problems"]
    assert unknown["unknown"]["checkpoint"] is None
    assert "'7'" in problem["what"]
    assert "step-1, step-2, step-3" in problem["measured"]


def test_the_trainer_can_scrape_the_metrics(results: Scenarios[Result]) -> None:
    [text] = [one["metrics"] for one in results["marked"].printed if "metrics" in one]
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    found = {one.name: one.value for one in samples if not one.labels}
    assert found["podferry_checkpoints_durable_total"] == 2
    assert found["podferry_checkpoint_durable_step"] == 3
    assert found["podferry_checkpoint_sent_bytes_total"] >= 2 * MIB
    assert found["podferry_checkpoint_durable_seconds_count"] == 2
    assert [one.labels["stage"] for one in samples if one.name == "podferry_stage" and one.value] == ["open"]

"""Parts of datasets and several of them: what the annotations select, what the trainer finds, and where."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import pytest

from podferry.webhook.pod.pod_json import SIDECAR
from tests.e2e.manifests import PREFIX, TRAINER, Object, container, job, pod
from tests.e2e.namespace import Answer, Namespace
from tests.e2e.outcome import Outcome, PodOutcome
from tests.e2e.scenarios import Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, assert_unharmed

KIB = 1 << 10
MIB = 1 << 20
TRAIN = {
    "labels.csv": b"l" * 100,
    "1.jpg": b"1" * 300 * KIB,
    "deep/2.jpg": b"2" * 200 * KIB,
    "deep/3.jpg": b"3" * 150 * KIB,
    "deep/draft-4.jpg": b"4" * KIB,
    "notes, old.txt": b"n",
    "raw/5.bin": b"5" * MIB,
}
VAL = {"a.bin": b"a" * 2 * MIB, "b.bin": b"", "c/d.bin": b"d" * 10}
WORLD = 2
USER = 1000
LOOKS = f"""{COMMON}
import errno

def look(path):
    found = {{}}
    for one in filter(pathlib.Path.is_file, path.rglob("*")):
        found[str(one.relative_to(path))] = [oct(one.stat().st_mode & 0o777), len(one.read_bytes())]
    try:
        (path / "mine").touch()
        outcome = "written"
    except OSError as error:
        outcome = errno.errorcode[error.errno]
    volume = os.statvfs(path)
    return {{"path": str(path), "files": found, "touch": outcome, "room": volume.f_blocks * volume.f_frsize}}

for name in os.environ:
    if name.startswith("PODFERRY_DATASET"):
        say(**{{name: look(pathlib.Path(os.environ[name]))}})
"""


class Result(NamedTuple):
    """The result of a scenario.

    Attributes:
        answer: kubectl's output when it started.
        outcome: Of the pod or the Job.
    """

    answer: Answer
    outcome: Outcome


def dataset_annotations(name: str, **values: str) -> dict[str, str]:
    """Annotations of the dataset NAME: `dataset_annotations("val", dataset="s3://…", file_mode="0440")`."""
    return {f"{PREFIX}{key.replace('_', '-')}.{name}": text for key, text in values.items()}


def collect_result(namespace: Namespace, manifest: Object) -> Result:
    answer = namespace.start(manifest)
    return Result(answer, namespace.outcome(manifest, 120))


def several(namespace: Namespace) -> Result:
    """An unnamed dataset with globs, one on disk, and one at another path."""
    annotations = namespace.store_annotations(
        dataset=namespace.bucket.uri("datasets/train"),
        dataset_size="16Mi",
        include="*.jpg *.csv, notes\\,\\ old.txt",
        exclude="draft-*",
    )
    annotations |= dataset_annotations(
        "val", dataset=namespace.bucket.uri("datasets/val"), dataset_size="64Mi", medium="disk"
    )
    annotations |= dataset_annotations("val", file_mode="0440", include="*.bin")
    annotations |= dataset_annotations(
        "raw-2", dataset=namespace.bucket.uri("datasets/train"), dataset_size="8Mi"
    )
    annotations |= dataset_annotations("raw-2", include="raw/", dataset_path="/data/raw", file_mode="0400")
    trainer = container(script=LOOKS)
    return collect_result(
        namespace, pod("several", trainer, annotations=annotations, securityContext={"runAsUser": USER})
    )


def automatic(namespace: Namespace) -> Result:
    """In memory it would exceed the policy's bound."""
    annotations = namespace.store_annotations(
        dataset=namespace.bucket.uri("datasets/val"), dataset_size="3Gi", medium="auto"
    )
    return collect_result(namespace, pod("automatic", container(script=LOOKS), annotations=annotations))


def parts(namespace: Namespace) -> Result:
    """Each pod of an Indexed Job has its part."""
    annotations = namespace.store_annotations(
        dataset=namespace.bucket.uri("datasets/train"),
        dataset_size="16Mi",
        shard="$(rank)/$(world)",
        world=WORLD,
    )
    indexed = {"completions": WORLD, "parallelism": WORLD, "completionMode": "Indexed"}
    return collect_result(
        namespace, job("parts", container(script=LOOKS), annotations=annotations, job_spec=indexed)
    )


SCENARIOS = {"several": several, "automatic": automatic, "parts": parts}


@pytest.fixture(scope="module")
def results(site: Site) -> Iterator[Scenarios[Result]]:
    site.upload_dataset("train", TRAIN)
    site.upload_dataset("val", VAL)
    with start_scenarios(site, SCENARIOS) as found:
        yield found


def seen(one: PodOutcome) -> dict[str, dict[str, Any]]:
    """What the trainer of a pod found in each dataset, by its variable."""
    lines = map(json.loads, one[TRAINER].log.splitlines())
    return {name: fact for line in lines for name, fact in line.items()}


def sizes(dataset: Mapping[str, Any]) -> dict[str, int]:
    return {name: size for name, (_, size) in dataset["files"].items()}


def modes(dataset: Mapping[str, Any]) -> set[str]:
    return {mode for mode, _ in dataset["files"].values()}


def volumes(one: PodOutcome) -> dict[str, Any]:
    """The emptyDirs of a pod, by name."""
    return {each["name"]: each.get("emptyDir", {}) for each in one.object["spec"]["volumes"]}


def requested(one: PodOutcome) -> Mapping[str, str]:
    (sidecar,) = (each for each in one.object["spec"]["initContainers"] if each["name"] == SIDECAR)
    requests: Mapping[str, str] = sidecar["resources"]["requests"]
    return requests


def test_globs_choose_the_files_of_each_dataset(results: Scenarios[Result]) -> None:
    outcome = results["several"].outcome
    assert_unharmed(outcome)
    found = seen(outcome.pod)
    selected = ("labels.csv", "1.jpg", "deep/2.jpg", "deep/3.jpg", "notes, old.txt")
    assert sizes(found["PODFERRY_DATASET"]) == {name: len(TRAIN[name]) for name in selected}
    assert sizes(found["PODFERRY_DATASET_VAL"]) == {name: len(data) for name, data in VAL.items()}
    assert sizes(found["PODFERRY_DATASET_RAW_2"]) == {"raw/5.bin": MIB}


def test_each_dataset_has_its_path_and_permissions(results: Scenarios[Result]) -> None:
    found = seen(results["several"].outcome.pod)
    places = {name: (one["path"], *modes(one), one["touch"]) for name, one in found.items()}
    assert places == {
        "PODFERRY_DATASET": ("/dev/shm/dataset", "0o644", "EROFS"),
        "PODFERRY_DATASET_VAL": ("/dev/shm/val", "0o440", "EROFS"),
        "PODFERRY_DATASET_RAW_2": ("/data/raw", "0o400", "EROFS"),
    }


def test_a_dataset_on_disk_takes_no_memory(results: Scenarios[Result]) -> None:
    one = results["several"].outcome.pod
    found = volumes(one)
    assert found["podferry-data-val"] == {"sizeLimit": "64Mi"}
    assert found["podferry-data-raw-2"] == {"medium": "Memory", "sizeLimit": "8Mi"}
    room = {name: dataset["room"] for name, dataset in seen(one).items()}
    assert room["PODFERRY_DATASET_RAW_2"] == 8 * MIB
    assert room["PODFERRY_DATASET_VAL"] > 64 * MIB, "the node's disk shows itself, not the limit"
    assert requested(one)["ephemeral-storage"] == "128Mi"


def test_what_the_policy_does_not_allow_in_memory_goes_to_disk(results: Scenarios[Result]) -> None:
    answer, outcome = results["automatic"]
    assert "podferry.io/medium: disk: in memory, the sidecar needs" in answer.errors
    assert_unharmed(outcome)
    assert "medium" not in volumes(outcome.pod)["podferry-data"]
    assert sizes(seen(outcome.pod)["PODFERRY_DATASET"]) == {name: len(data) for name, data in VAL.items()}


def test_each_rank_sees_its_part_and_together_they_see_all(results: Scenarios[Result]) -> None:
    outcome = results["parts"].outcome
    assert outcome.succeeded, outcome
    found = [sizes(seen(one)["PODFERRY_DATASET"]) for one in outcome.pods]
    assert len(found) == WORLD
    assert all(found)
    names = [name for one in found for name in one]
    assert sorted(names) == sorted(TRAIN)
    loads = [sum(one.values()) for one in found]
    assert max(loads) - min(loads) <= max(map(len, TRAIN.values()))

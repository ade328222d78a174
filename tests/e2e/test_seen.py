"""docs/kubernetes.md shows what kubectl shows. `PODFERRY_WRITE_GOLDEN=1 make e2e` writes it anew."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.layout import BASE_IMAGE
from tests.e2e import install, seen
from tests.e2e.site import Site
from tests.e2e.space import STORE_SECRET, Space

DATA = {f"{digit}.bin": bytes([digit]) * 700_000 for digit in range(5)}
WRONG = {"datset": "s3://datasets/digits", "checkpoint-size": "lots", "keep-local": "-1"}
TOO_LARGE = {"dataset-size": "2Mi"}
BEYOND = {"dataset-size": "3Gi"}
STAMPED = {"status": "injected"}

Told = dict[str, str]


class Reader:
    """Somebody who follows the page: applies its Job, or one that differs, and looks.

    Args:
        space: Where.
        folder: For the file that is applied.
    """

    def __init__(self, space: Space, folder: Path) -> None:
        self.space = space
        self._file = folder / "job.yaml"
        # The page's names for what is here; the other way round for what is applied.
        self.names = {
            space.bucket.endpoint: "http://store.example:9000",
            "s3://e2e/datasets": "s3://datasets",
            "s3://e2e/results": "s3://results",
            install.IMAGE: "registry.example/podferry:0.1.0",
            BASE_IMAGE: "registry.example/trainer:1",
            space.name: "team",
            f"{folder}/": "",
        }

    def documents(self) -> list[dict[str, Any]]:
        """The page's job.yaml, for this cluster."""
        text = seen.block("job.yaml", "applied", "yaml")
        for real, documented in self.names.items():
            if documented not in {"", "team"}:
                text = text.replace(documented, real)
        return list(yaml.safe_load_all(text))

    def changed(self, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The Job with other wishes."""
        job = self.documents()[-1]
        wishes = job["spec"]["template"]["metadata"]["annotations"]
        wishes |= {f"podferry.io/{name}": value for name, value in annotations.items()}
        return job

    def bare(self, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The Job's pod, by itself."""
        template = self.changed(annotations)["spec"]["template"]
        metadata = {**template["metadata"], "name": "digits"}
        return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}

    def apply(self, *documents: dict[str, Any]) -> str:
        """`kubectl apply -f job.yaml`; what it says, the page's names in it."""
        self._file.write_text(yaml.safe_dump_all(documents))
        answer = self.space.ask("apply", "-f", str(self._file))
        return self.shown(answer.output + answer.errors)

    def shown(self, text: str) -> str:
        """With the page's names."""
        return seen.as_documented(text, self.names)

    def describe_pod(self, *sections: str) -> str:
        """`kubectl describe pod` of the Job's only one, or some sections of it."""
        [one] = self.space.pods(self.documents()[-1])
        text = self.space.kubectl("describe", "pod", one["metadata"]["name"])
        return self.shown(seen.described(text, sections or seen.SECTIONS))

    def describe_gate(self) -> str:
        """What it says of the gate."""
        return seen.part(self.describe_pod("Init Containers"), "podferry-gate")


@pytest.fixture(scope="module")
def told(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    """All that the page shows, by the names of its blocks."""
    site.upload_dataset("digits", DATA)
    with site.namespace() as space:
        reader = Reader(space, tmp_path_factory.mktemp("reader"))
        found = trained(reader) | refused_by_the_gate(reader) | denied(reader)
        with install.not_registered(site.cluster, install.WEBHOOKS):
            found["not asked"] = reader.apply(reader.bare({}))
            found["sidecar gone"] = reader.apply(reader.bare(STAMPED))
        with install.webhook_down(site.cluster):
            found["webhook down"] = reader.apply(reader.bare({}))
        yield found


def trained(reader: Reader) -> Told:
    """The page's Job as it stands."""
    space, job = reader.space, reader.documents()[-1]
    found = {"applied": reader.apply(*reader.documents())}
    assert (outcome := space.outcome(job)).succeeded, outcome
    found["gate"] = reader.shown(space.kubectl("logs", "job/digits", "-c", "podferry-gate"))
    found["injected"] = reader.describe_pod()
    destination = space.bucket.uri("results/digits")
    listed = space.bucket.podferry("checkpoints", "verify", destination, space.lineage("digits"), "--deep")
    found["verified"] = seen.columns(reader.shown(listed))
    space.delete(job)
    return found


def refused_by_the_gate(reader: Reader) -> Told:
    """A wish that only the agent can find wrong, and a Job that nobody validated."""
    space, job = reader.space, reader.changed(TOO_LARGE)
    reader.apply(job)
    assert space.outcome(job).reason == "PodFailurePolicy"
    found = {"too large": reader.describe_gate()}
    found["job failed"] = reader.shown(space.kubectl("get", "job", "digits", f"-o=jsonpath={CONDITION}"))
    space.delete(job)
    job = reader.changed(WRONG)
    nightly = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job["spec"]}}
    space.start(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "digits"}, "spec": nightly}
    )
    space.kubectl("create", "job", "digits", "--from=cronjob/digits")
    assert space.outcome(job).reason == "PodFailurePolicy"
    found["wrong, made by a controller"] = reader.describe_gate()
    space.delete(job)
    return found


def denied(reader: Reader) -> Told:
    """What a person is told at once."""
    return {
        "wrong job": reader.apply(reader.changed(WRONG)),
        "wrong pod": reader.apply(reader.bare(WRONG)),
        "beyond the bounds": reader.apply(reader.bare(BEYOND)),
    }


CONDITION = '{.status.conditions[?(@.type=="Failed")].message}'
BLOCKS = (
    "applied",
    "gate",
    "injected",
    "verified",
    "too large",
    "job failed",
    "wrong, made by a controller",
    "wrong job",
    "wrong pod",
    "beyond the bounds",
    "not asked",
    "sidecar gone",
    "webhook down",
)


@pytest.mark.parametrize("name", BLOCKS)
def test_the_page_shows_what_kubectl_shows(told: Told, name: str) -> None:
    if os.environ.get("PODFERRY_WRITE_GOLDEN"):
        seen.write(name, told[name])
    assert told[name] == seen.block(name)


def test_every_block_of_the_page_is_looked_at() -> None:
    assert sorted(seen.marked()) == sorted(BLOCKS)


def test_the_page_names_the_secret_that_is_there() -> None:
    assert f"create secret generic {STORE_SECRET} " in seen.PAGE.read_text()

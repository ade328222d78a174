"""docs/kubernetes.md shows what kubectl shows. `PODFERRY_WRITE_GOLDEN=1 make e2e` rewrites it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.layout import BASE_IMAGE
from tests.e2e import documented_output, install
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site

DATA = {f"{digit}.bin": bytes([digit]) * 700_000 for digit in range(5)}
WRONG = {"datset": "s3://datasets/digits", "checkpoint-size": "lots", "keep-local": "-1"}
TOO_LARGE = {"dataset-size": "2Mi"}
BEYOND = {"dataset-size": "3Gi"}
STAMPED = {"status": "injected"}

Outputs = dict[str, str]


class Reader:
    """Follows the page: applies its Job or a variant, and reads the output.

    Args:
        namespace: Of the objects.
        folder: For the file that is applied.
    """

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.namespace = namespace
        self._file = folder / "job.yaml"
        # The page's names for what is here; the other way round for what is applied.
        self.names = {
            namespace.bucket.endpoint: "http://store.example:9000",
            "s3://e2e/datasets": "s3://datasets",
            "s3://e2e/results": "s3://results",
            install.IMAGE: "registry.example/podferry:0.1.0",
            BASE_IMAGE: "registry.example/trainer:1",
            namespace.name: "team",
            f"{folder}/": "",
        }

    def documents(self) -> list[dict[str, Any]]:
        """The page's job.yaml, for this cluster."""
        text = documented_output.block("job.yaml", "applied", "yaml")
        for real, documented in self.names.items():
            if documented not in {"", "team"}:
                text = text.replace(documented, real)
        return list(yaml.safe_load_all(text))

    def changed(self, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The Job with other annotations."""
        job = self.documents()[-1]
        current = job["spec"]["template"]["metadata"]["annotations"]
        current |= {f"podferry.io/{name}": value for name, value in annotations.items()}
        return job

    def bare(self, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The Job's pod, without the Job."""
        template = self.changed(annotations)["spec"]["template"]
        metadata = {**template["metadata"], "name": "digits"}
        return {"apiVersion": "v1", "kind": "Pod", **template, "metadata": metadata}

    def apply(self, *documents: dict[str, Any]) -> str:
        """`kubectl apply -f job.yaml`; its output with the page's names."""
        self._file.write_text(yaml.safe_dump_all(documents))
        answer = self.namespace.ask("apply", "-f", str(self._file))
        return self.shown(answer.output + answer.errors)

    def shown(self, text: str) -> str:
        """The text with the page's names."""
        return documented_output.as_documented(text, self.names)

    def describe_pod(self, *sections: str) -> str:
        """`kubectl describe pod` of the Job's only one, or some sections of it."""
        [one] = self.namespace.pods(self.documents()[-1])
        text = self.namespace.kubectl("describe", "pod", one["metadata"]["name"])
        return self.shown(documented_output.described(text, sections or documented_output.SECTIONS))

    def describe_gate(self) -> str:
        """Its section about the gate."""
        return documented_output.part(self.describe_pod("Init Containers"), "podferry-gate")


@pytest.fixture(scope="module")
def outputs(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outputs]:
    """All that the page shows, by the names of its blocks."""
    site.upload_dataset("digits", DATA)
    with site.namespace() as namespace:
        reader = Reader(namespace, tmp_path_factory.mktemp("reader"))
        found = trained(reader) | refused_by_the_gate(reader) | denied(reader)
        with install.not_registered(site.cluster, install.WEBHOOKS):
            found["not asked"] = reader.apply(reader.bare({}))
            found["sidecar gone"] = reader.apply(reader.bare(STAMPED))
        with install.webhook_down(site.cluster):
            found["webhook down"] = reader.apply(reader.bare({}))
        yield found


def trained(reader: Reader) -> Outputs:
    """The page's Job, unchanged."""
    namespace, job = reader.namespace, reader.documents()[-1]
    found = {"applied": reader.apply(*reader.documents())}
    assert (outcome := namespace.outcome(job)).succeeded, outcome
    found["gate"] = reader.shown(namespace.kubectl("logs", "job/digits", "-c", "podferry-gate"))
    found["injected"] = reader.describe_pod()
    destination = namespace.bucket.uri("results/digits")
    listed = namespace.bucket.podferry(
        "checkpoints", "verify", destination, namespace.lineage("digits"), "--deep"
    )
    found["verified"] = documented_output.columns(reader.shown(listed))
    namespace.delete(job)
    return found


def refused_by_the_gate(reader: Reader) -> Outputs:
    """A problem that only the agent can find, and a Job that was not validated."""
    namespace, job = reader.namespace, reader.changed(TOO_LARGE)
    reader.apply(job)
    assert namespace.outcome(job).reason == "PodFailurePolicy"
    found = {"too large": reader.describe_gate()}
    found["job failed"] = reader.shown(namespace.kubectl("get", "job", "digits", f"-o=jsonpath={CONDITION}"))
    namespace.delete(job)
    job = reader.changed(WRONG)
    nightly = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": job["spec"]}}
    namespace.start(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "digits"}, "spec": nightly}
    )
    namespace.kubectl("create", "job", "digits", "--from=cronjob/digits")
    assert namespace.outcome(job).reason == "PodFailurePolicy"
    found["wrong, made by a controller"] = reader.describe_gate()
    namespace.delete(job)
    return found


def denied(reader: Reader) -> Outputs:
    """Requests that the webhook denies."""
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
def test_the_page_shows_what_kubectl_shows(outputs: Outputs, name: str) -> None:
    if os.environ.get("PODFERRY_WRITE_GOLDEN"):
        documented_output.write(name, outputs[name])
    assert outputs[name] == documented_output.block(name)


def test_every_block_of_the_page_is_checked() -> None:
    assert sorted(documented_output.marked()) == sorted(BLOCKS)


def test_the_page_names_the_secret_that_exists() -> None:
    assert f"create secret generic {STORE_SECRET} " in documented_output.PAGE.read_text()

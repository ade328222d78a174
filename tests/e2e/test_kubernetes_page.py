"""docs/kubernetes.md shows what kubectl shows. `PODFERRY_WRITE_GOLDEN=1 make e2e` rewrites it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.layout import BASE_IMAGE
from tests.cluster.process import run
from tests.e2e import documented_output, install
from tests.e2e.bucket import KEY, SECRET
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site

DATA = {f"{digit}.bin": bytes([digit]) * 700_000 for digit in range(5)}
WRONG = {"datset": "s3://datasets/digits", "checkpoint-size": "lots", "keep-local": "-1"}
TOO_LARGE = {"dataset-size": "2Mi"}
BEYOND = {"dataset-size": "3Gi"}
STAMPED = {"status": "injected"}

KEYS = f"AWS_ACCESS_KEY_ID={KEY} AWS_SECRET_ACCESS_KEY={SECRET}"

Outputs = dict[str, str]


class Reader:
    """Follows the page: runs its commands, applies its Job or a variant, and reads the output.

    Args:
        namespace: Of the objects; the page's commands create it.
        folder: Where the commands run.
    """

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.namespace = namespace
        self._folder, self._file = folder, folder / "job.yaml"
        # The page's names for what is here; the other way round for what is applied.
        self.names = {
            namespace.bucket.endpoint: "http://store.example:9000",
            "s3://e2e/datasets": "s3://datasets",
            "s3://e2e/results": "s3://results",
            install.IMAGE: "registry.example/podferry:0.1.0",
            BASE_IMAGE: "python:3.12-slim",
            namespace.name: "team",
            f"{folder}/": "",
        }

    def documents(self) -> list[dict[str, Any]]:
        """The page's job.yaml, for this cluster."""
        text = documented_output.block("job.yaml", "applied", "yaml")
        return list(yaml.safe_load_all(self._real(text)))

    def _real(self, text: str) -> str:
        for real, documented in self.names.items():
            if documented not in {"", "team"}:
                text = text.replace(documented, real)
        return text

    def run_commands(self) -> str:
        """Run the page's commands in order, as a reader would; the output of the last one."""
        shutil.copytree(documented_output.ROOT / "deploy", self._folder / "deploy")
        self._file.write_text(yaml.safe_dump_all(self.documents()))
        self._install_kubectl()
        *before, last = [self._real(text) for text in documented_output.commands()]
        script = "".join(before).replace("AWS_ACCESS_KEY_ID=... AWS_SECRET_ACCESS_KEY=...", KEYS)
        script = re.sub(r"\bteam$", self.namespace.name, script, flags=re.MULTILINE)
        path = f"{self._folder}:{os.environ['PATH']}"
        words = ["bash", "-euc", f"{{\n{script}}} >&2\n{last}"]
        return self.shown(run(words, cwd=self._folder, environment={"PATH": path}, timeout=180))

    def _install_kubectl(self) -> None:
        """A kubectl with a configuration of its own, which the page's commands change."""
        kubectl = self.namespace.cluster.backend.kubectl
        config = self._folder / "kubeconfig"
        config.write_text(run([*kubectl, "config", "view", "--raw", "--minify"]))
        program = self._folder / "kubectl"
        program.write_text(f'#!/bin/sh\nexec {shlex.join(kubectl)} --kubeconfig {config} "$@"\n')
        program.chmod(0o700)

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

    def apply_invalid_policy(self) -> str:
        """Apply the page's policy with a misspelled key; the reason that kubectl prints last."""
        policy = self._folder / "overlays/mine/policy.yaml"
        wrong = policy.with_name("wrong.yaml")
        wrong.write_text(policy.read_text().replace("bounds:", "bonds:"))
        answer = self.namespace.ask("-n", install.NAMESPACE, "apply", "-f", str(wrong))
        _, mark, reason = self.shown(answer.errors).partition("admission webhook")
        return mark + reason

    def copy_pod(self, *words: str) -> str:
        """`kubectl debug --copy-to` of the Job's only pod; its message."""
        [one] = self.namespace.pods(self.documents()[-1])
        copied = ("--copy-to=copy", "--profile=general", "--container=trainer", *words, "--", "sh")
        return self.shown(self.namespace.ask("debug", one["metadata"]["name"], *copied).errors)

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
    with site.namespace_to_create() as namespace:
        reader = Reader(namespace, tmp_path_factory.mktemp("reader"))
        with install.uninstalled(site.cluster):
            found = trained(reader) | refused_by_the_gate(reader) | denied(reader)
        with install.not_registered(site.cluster, install.WEBHOOKS):
            found["not asked"] = reader.apply(reader.bare({}))
            found["sidecar gone"] = reader.apply(reader.bare(STAMPED))
        with install.webhook_down(site.cluster):
            found["webhook down"] = reader.apply(reader.bare({}))
        yield found


def trained(reader: Reader) -> Outputs:
    """The page's commands and its Job, unchanged."""
    namespace, job = reader.namespace, reader.documents()[-1]
    found = {"applied": reader.run_commands()}
    assert (outcome := namespace.outcome(job)).succeeded, outcome
    found["gate"] = reader.shown(namespace.kubectl("logs", "job/digits", "-c", "podferry-gate"))
    found["injected"] = reader.describe_pod()
    destination = namespace.bucket.uri("results/digits")
    listed = namespace.bucket.podferry(
        "checkpoints", "verify", destination, namespace.lineage("digits"), "--deep"
    )
    found["verified"] = documented_output.columns(reader.shown(listed))
    found["copy"] = reader.copy_pod()
    found["copy with annotations"] = reader.copy_pod("--keep-annotations")
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
        "wrong policy": reader.apply_invalid_policy(),
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
    "wrong policy",
    "copy",
    "copy with annotations",
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

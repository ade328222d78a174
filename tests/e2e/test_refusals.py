"""A pod that podferry cannot serve fails within a minute; its gate says why, with numbers or the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from podferry.contract.exit_codes import EXIT_NEVER
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.e2e.bucket import CREDENTIALS
from tests.e2e.manifests import TRAINER, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import start_scenarios
from tests.e2e.site import Site
from tests.e2e.store_proxy import store_proxy

FILES = {"a.bin": b"a" * (1 << 20), "b.bin": b"b" * (2 << 20)}
WRONG = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "wrong"},
    "stringData": CREDENTIALS | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"},
}
MAX_GATE_SECONDS = 60.0
"""Seconds from the gate's start to its end; the agent starts at the same time."""
EXIT_RETRYABLE = 1

Settings = Callable[[Namespace], dict[str, str]]
CASES: dict[str, Settings] = {
    "too-large": lambda namespace: namespace.store_annotations(dataset=data(namespace), dataset_size="1Mi"),
    "no-bucket": lambda namespace: namespace.store_annotations(
        dataset="s3://absent/data", dataset_size="8Mi"
    ),
    "no-objects": lambda namespace: namespace.store_annotations(
        dataset=namespace.bucket.uri("datasets/refusal"), dataset_size="8Mi"
    ),
    "no-secret": lambda namespace: (
        namespace.store_annotations(dataset=data(namespace), dataset_size="8Mi") | {SECRET: "nowhere"}
    ),
    "wrong-keys": lambda namespace: (
        namespace.store_annotations(dataset=data(namespace), dataset_size="8Mi") | {SECRET: "wrong"}
    ),
    "no-address": lambda namespace: unreachable(namespace, "http://store.nowhere.example:9000"),
    "no-server": lambda namespace: unreachable(namespace, f"http://{namespace.cluster.host_address}:1"),
    "no-destination": lambda namespace: namespace.store_annotations(
        checkpoints="s3://absent/x", checkpoint_size="1Mi"
    ),
    "several": lambda namespace: namespace.store_annotations(
        dataset=data(namespace), dataset_size="1Mi", checkpoints="s3://absent/x", checkpoint_size="1Mi"
    ),
}
SECRET = "podferry.io/secret"
ENDPOINT = "podferry.io/endpoint"
MESSAGES = {
    "too-large": ["2 files of 3.0 MiB", "1.0 MiB are free", "Set podferry.io/dataset-size to"],
    "no-bucket": ["absent", "bucket"],
    "no-objects": ["datasets/refusal", "datasets/refusals"],
    "no-secret": ["there are no credentials in", "Create the Secret", "AWS_ACCESS_KEY_ID"],
    "wrong-keys": ["s3://e2e", "credentials"],
    "no-address": ["http://store.nowhere.example:9000"],
    "no-server": [":1"],
    "silent": ["endpoint"],
    "no-destination": ["absent", "bucket"],
    "several": ["1.0 MiB are free", "absent"],
}
RETRIED = {"no-address", "no-server", "silent"}
"""Cases that a retry may solve: the gate's exit code says so."""


def data(namespace: Namespace) -> str:
    return namespace.bucket.uri("datasets/refusals")


def unreachable(namespace: Namespace, endpoint: str) -> dict[str, str]:
    return namespace.store_annotations(dataset=data(namespace), dataset_size="8Mi") | {ENDPOINT: endpoint}


def refused(name: str, annotations: dict[str, str], namespace: Namespace) -> Outcome:
    return namespace.run(pod(name, container(script="print('trained')"), annotations=annotations), timeout=90)


def silent(namespace: Namespace) -> Outcome:
    """A server that takes connections and never answers."""
    with store_proxy(namespace.cluster, namespace.bucket, "*") as proxy:
        return refused("silent", unreachable(namespace, proxy.endpoint), namespace)


def plain(name: str) -> Callable[[Namespace], Outcome]:
    return lambda namespace: refused(name, CASES[name](namespace), namespace)


@pytest.fixture(scope="module")
def outcomes(site: Site) -> Iterator[Callable[[str], Outcome]]:
    """The outcome of each pod. Those that wait for a store start first: their time is measured."""
    site.upload_dataset("refusals", FILES)
    cases = {name: plain(name) for name in CASES} | {"silent": silent}
    late = {name: run for name, run in cases.items() if name not in RETRIED}
    with start_scenarios(site, {name: cases[name] for name in RETRIED}) as first:
        for name in RETRIED:
            first.namespace.until("its agent to answer", partial(agent_answers, first.namespace, name), 90)
        with start_scenarios(site, late, WRONG) as second:
            yield lambda name: (first if name in RETRIED else second)[name]


def agent_answers(namespace: Namespace, name: str) -> bool:
    return "planning" in namespace.log(name, GATE)


@pytest.mark.parametrize("name", MESSAGES)
def test_the_gate_says_why(outcomes: Callable[[str], Outcome], name: str) -> None:
    outcome = outcomes(name)
    gate = outcome[GATE]
    assert outcome.phase == "Failed", outcome
    assert [text for text in MESSAGES[name] if text not in gate.message] == [], gate.message
    assert gate.message.startswith("podferry: ")
    assert gate.exit_code == (EXIT_RETRYABLE if name in RETRIED else EXIT_NEVER)
    assert gate.seconds < MAX_GATE_SECONDS
    assert outcome[SIDECAR].exit_code == 0
    assert "waiting" in outcome[TRAINER].state or outcome[TRAINER].exit_code is not None
    assert outcome[TRAINER].log == ""

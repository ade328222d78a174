"""A pod whose wish cannot come true fails within a minute; its gate says why, with numbers or the remedy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest

from podferry.contract.http_api import EXIT_NEVER
from podferry.webhook.pod_json import GATE, SIDECAR
from tests.e2e.bucket import CREDENTIALS
from tests.e2e.door import door
from tests.e2e.manifests import TRAINER, container, pod
from tests.e2e.outcome import Outcome
from tests.e2e.site import Site
from tests.e2e.space import Space
from tests.e2e.stories import told

FILES = {"a.bin": b"a" * (1 << 20), "b.bin": b"b" * (2 << 20)}
WRONG = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "wrong"},
    "stringData": CREDENTIALS | {"AWS_SECRET_ACCESS_KEY": "not-the-secret"},
}
PATIENCE = 60.0
"""Seconds from the gate's start to its last word: the agent starts at the same moment."""
RETRYABLE = 1

Wishes = Callable[[Space], dict[str, str]]
WISHES: dict[str, Wishes] = {
    "too-large": lambda space: space.wishes(dataset=data(space), dataset_size="1Mi"),
    "no-bucket": lambda space: space.wishes(dataset="s3://absent/data", dataset_size="8Mi"),
    "no-objects": lambda space: space.wishes(
        dataset=space.bucket.uri("datasets/refusal"), dataset_size="8Mi"
    ),
    "no-secret": lambda space: space.wishes(dataset=data(space), dataset_size="8Mi") | {SECRET: "nowhere"},
    "wrong-keys": lambda space: space.wishes(dataset=data(space), dataset_size="8Mi") | {SECRET: "wrong"},
    "no-address": lambda space: unreachable(space, "http://store.nowhere.example:9000"),
    "no-server": lambda space: unreachable(space, f"http://{space.cluster.host_address}:1"),
    "no-destination": lambda space: space.wishes(checkpoints="s3://absent/x", checkpoint_size="1Mi"),
    "several": lambda space: space.wishes(
        dataset=data(space), dataset_size="1Mi", checkpoints="s3://absent/x", checkpoint_size="1Mi"
    ),
}
SECRET = "podferry.io/secret"
ENDPOINT = "podferry.io/endpoint"
SAID = {
    "too-large": ["2 files of 3.0 MiB", "1.0 MiB are free", "Set podferry.io/dataset-size to"],
    "no-bucket": ["absent", "bucket"],
    "no-objects": ["datasets/refusal", "datasets/refusals"],
    "no-secret": ["Secret", "is missing", "AWS_ACCESS_KEY_ID"],
    "wrong-keys": ["s3://e2e", "credentials"],
    "no-address": ["http://store.nowhere.example:9000"],
    "no-server": [":1"],
    "silent": ["endpoint"],
    "no-destination": ["absent", "bucket"],
    "several": ["1.0 MiB are free", "absent"],
}
MAY_HELP = {"no-address", "no-server", "silent"}
"""Where a new try may fare better: the gate says so by its exit code."""


def data(space: Space) -> str:
    return space.bucket.uri("datasets/refusals")


def unreachable(space: Space, endpoint: str) -> dict[str, str]:
    return space.wishes(dataset=data(space), dataset_size="8Mi") | {ENDPOINT: endpoint}


def refused(name: str, wishes: dict[str, str], space: Space) -> Outcome:
    return space.run(pod(name, container(script="print('trained')"), annotations=wishes), timeout=90)


def silent(space: Space) -> Outcome:
    """A server that takes connections and never answers."""
    with door(space.cluster, space.bucket, "*") as closed:
        return refused("silent", unreachable(space, closed.endpoint), space)


def plain(name: str) -> Callable[[Space], Outcome]:
    return lambda space: refused(name, WISHES[name](space), space)


@pytest.fixture(scope="module")
def outcomes(site: Site) -> Iterator[Callable[[str], Outcome]]:
    """How each pod has ended. Those that wait for a store begin first: their time counts."""
    site.upload_dataset("refusals", FILES)
    stories = {name: plain(name) for name in WISHES} | {"silent": silent}
    late = {name: story for name, story in stories.items() if name not in MAY_HELP}
    with told(site, {name: stories[name] for name in MAY_HELP}) as first:
        for name in MAY_HELP:
            first.space.until("its agent to answer", partial(agent_answers, first.space, name), 90)
        with told(site, late, WRONG) as second:
            yield lambda name: (first if name in MAY_HELP else second)[name]


def agent_answers(space: Space, name: str) -> bool:
    return "planning" in space.log(name, GATE)


@pytest.mark.parametrize("name", SAID)
def test_the_gate_says_why(outcomes: Callable[[str], Outcome], name: str) -> None:
    outcome = outcomes(name)
    gate = outcome[GATE]
    assert outcome.phase == "Failed", outcome
    assert [text for text in SAID[name] if text not in gate.message] == [], gate.message
    assert gate.message.startswith("podferry: ")
    assert gate.exit_code == (RETRYABLE if name in MAY_HELP else EXIT_NEVER)
    assert gate.seconds < PATIENCE
    assert outcome[SIDECAR].exit_code == 0
    assert "waiting" in outcome[TRAINER].state or outcome[TRAINER].exit_code is not None
    assert outcome[TRAINER].log == ""

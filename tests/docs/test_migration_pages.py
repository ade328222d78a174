"""The pages for users of other caches: the webhook accepts their manifests, and verbs their arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.pod.known_cache import KnownCache
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy
from tests.docs.test_annotated_examples import BLOCK

DOCS = Path(__file__).parents[2] / "docs"
SOURCE = "bos://paddleflow-public.hkg.bcebos.com/imagenet/demo"
CACHE = KnownCache("imagenet", SOURCE, "http://10.0.0.7:8091", "paddle-system")


def documents(page: str, kind: str) -> list[Any]:
    """The manifests of a kind on a page."""
    found = [yaml.safe_load(block) for block in BLOCK.findall((DOCS / page).read_text())]
    return [one for one in found if one.get("kind") == kind]


@pytest.mark.parametrize("role", ["worker", "ps"])
def test_the_pods_of_the_paddle_job_read_from_the_cache(role: str) -> None:
    [job] = documents("from-paddle-operator.md", "PaddleJob")
    template = job["spec"][role]["template"]
    owner = {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "name": job["metadata"]["name"],
        "uid": "1",
        "controller": True,
    }
    metadata = {
        **template["metadata"],
        "name": f"ps-demo-{role}-0",
        "namespace": job["metadata"]["namespace"],
        "ownerReferences": [owner],
    }
    namespace = Namespace("paddle-system", {}, caches=(CACHE,))
    policy = Policy(image="registry.example.com/podferry:1")
    decision = inject({"metadata": metadata, "spec": template["spec"]}, namespace, policy)
    assert (decision.outcome, decision.problems) == (InjectionOutcome.INJECTED, ())
    assert f"--dataset-cache={CACHE.url}" in str(decision.patch)
    assert "/mnt/imagenet" in str(decision.patch)

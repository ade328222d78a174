"""Every example of annotations in the documentation is accepted as it is written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from podferry.contract.spec import PREFIX
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/from-openpai.md", ROOT / "docs/from-fluid.md", *sorted(ROOT.glob("docs/stores/*.md"))]
BLOCK = re.compile(r"^```yaml\n(.*?)^```", re.MULTILINE | re.DOTALL)
POLICY = Policy(image="registry.example.com/podferry:1", image_volumes=True)


def examples() -> Iterator[Any]:
    for page in PAGES:
        found = [
            document for block in BLOCK.findall(page.read_text()) for document in yaml.safe_load_all(block)
        ]
        annotated = [one["metadata"] for one in found if _annotations(one)]
        for number, metadata in enumerate(annotated):
            yield pytest.param(metadata, id=f"{page.stem}-{number}")


def _annotations(document: Any) -> bool:
    found = (document.get("metadata") or {}).get("annotations") if isinstance(document, dict) else None
    return any(key.startswith(PREFIX) for key in found or {})


@pytest.mark.parametrize("metadata", list(examples()))
def test_an_example_is_accepted(metadata: dict[str, Any]) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "digits", "uid": "1", "controller": True}
    pod = {
        "metadata": {
            **metadata,
            "generateName": "digits-",
            "namespace": "team-a",
            "ownerReferences": [owner],
        },
        "spec": {"containers": [{"name": "trainer", "image": "pytorch"}]},
    }
    decision = inject(pod, Namespace("team-a", {}), POLICY)
    assert decision.problems == ()
    assert decision.outcome in {InjectionOutcome.INJECTED, InjectionOutcome.SHARED}


def test_the_pages_have_examples() -> None:
    assert len(list(examples())) >= 10

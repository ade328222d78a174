"""Many pods that are created at the same time. The node runs 110; these wait for one that does not exist."""

from __future__ import annotations

import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

from tests.e2e.api_server import api_server_of
from tests.e2e.figures import Figures
from tests.e2e.manifests import container, pod
from tests.e2e.namespace import Namespace

COUNT, AT_ONCE = 200, 20


def create_some(namespace: Namespace, first: int) -> Counter[str]:
    """Create every `AT_ONCE`th pod from `first` on; their stamps, or the reasons against them."""
    found = Counter[str]()
    annotations = namespace.training_annotations(dataset="s3://e2e/datasets/digits")
    with api_server_of(namespace) as api_server:
        for number in range(first, COUNT, AT_ONCE):
            made = pod(f"many-{number}", container(command=["true"]), annotations=annotations)
            made["spec"]["nodeSelector"] = {"podferry.test/node": "absent"}
            status, answer = api_server.create(made)
            found[answer["metadata"]["annotations"]["podferry.io/status"] if status == 201 else answer] += 1
    return found


def test_all_pods_are_injected(namespace: Namespace, figures: Figures) -> None:
    started = time.monotonic()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        counts = threads.map(lambda first: create_some(namespace, first), range(AT_ONCE))
    found = sum(counts, Counter[str]())
    figures.record(
        f"{COUNT} pods, {AT_ONCE} at a time", {**found, "seconds": round(time.monotonic() - started, 1)}
    )
    assert found == {"injected": COUNT}
    stored = namespace.get("pods")["items"]
    assert len([one for one in stored if "podferry" in str(one["spec"]["initContainers"][0])]) == COUNT

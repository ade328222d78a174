"""Caches of a cluster, as `podferry cache create` renders them."""

import msgspec
import pytest

from podferry.cache.manifests.cache_spec import CacheSpec
from podferry.cache.manifests.manifests import manifests
from podferry.contract.cache_api import CACHE_LABEL, STATUS_PATH, HolderStatus
from tests.support.live_api import live_api
from tests.support.undistributed import load

load("faults")


@pytest.fixture
def api(tmp_path):
    """An API server with two caches of one name, each with a holder that runs."""
    with live_api(tmp_path) as api:
        for namespace in ("podferry", "team"):
            for document in manifests(CacheSpec("digits", namespace, "s3://b/c", 1 << 20, "image")):
                api.add(document)
            add_pod(api, namespace, f"{namespace}-0")
            status = HolderStatus("n1", (), ("s3://b/c",), readers=(f"{namespace}/{namespace}-0",))
            say(api, f"{namespace}-0", status)
        yield api


def add_pod(api, namespace, name, node="n1"):
    """Add a holder's pod."""
    metadata = {"name": name, "namespace": namespace, "labels": {CACHE_LABEL: "digits"}}
    api.add({"kind": "Pod", "metadata": metadata, "spec": {"nodeName": node}})


def say(api, pod, status):
    """Have a holder report a status."""
    api.holders[f"GET {pod} {STATUS_PATH}"] = lambda _: (200, msgspec.json.encode(status))

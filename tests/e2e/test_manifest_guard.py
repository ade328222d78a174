"""What a manifest names must be allowed, not only the manifest itself: docs/policy.md."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from podferry.contract.exit_codes import EXIT_NEVER
from podferry.contract.manifest import Entry, encode_manifest, freeze
from podferry.webhook.pod.pod_json import GATE
from tests.e2e.manifests import TRAINER, Object, container, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site

READS = """
import os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
print({one.name: one.read_bytes() for one in data.iterdir()})
"""
FILE = b"1234567890"
TENANT = {"podferry.test/rules": "training"}
"""Label of namespaces whose guardrail allows datasets/ only."""


@pytest.fixture
def tenant(site: Site) -> Iterator[Namespace]:
    with site.namespace(TENANT) as namespace:
        yield namespace


def reader(namespace: Namespace, data: str) -> Object:
    """A pod whose dataset is an allowed manifest that names this data."""
    key = f"datasets/{namespace.name}.podferry.json"
    namespace.bucket.put(key, encode_manifest(freeze(data, [Entry("1.bin", len(FILE))])))
    annotations = namespace.store_annotations(dataset=namespace.bucket.uri(key), dataset_size="1Mi")
    return pod("reads", container(script=READS), annotations=annotations)


def test_allowed_data_of_a_manifest_is_fetched(site: Site, tenant: Namespace) -> None:
    data = site.upload_dataset(f"{tenant.name}/data", {"1.bin": FILE})
    outcome = tenant.run(reader(tenant, data))
    assert outcome.succeeded, outcome
    assert outcome[TRAINER].log.strip() == str({"1.bin": FILE})


@pytest.mark.parametrize(
    "data",
    [
        "s3://e2e/private/data",  # outside of the namespace's guardrail
        "s3://other/datasets/data",  # outside of the policy
        "http://169.254.169.254/latest/meta-data",
        "file:///podferry/secrets",
    ],
)
def test_other_data_is_refused(tenant: Namespace, data: str) -> None:
    tenant.bucket.put("private/data/1.bin", FILE)
    outcome = tenant.run(reader(tenant, data))
    assert outcome[GATE].exit_code == EXIT_NEVER, outcome
    assert "the manifest s3://e2e/datasets/" in outcome[GATE].message
    assert data in outcome[GATE].message
    assert outcome[TRAINER].exit_code is None

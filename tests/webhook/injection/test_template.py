from collections.abc import Callable
from typing import Any

import msgspec

from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.webhook.injection.inject import inject
from podferry.webhook.injection.template import MAX_CACHED_BYTES, CheckedTemplate, template_of
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
SETTINGS = {
    "dataset": "s3://d/x",
    "dataset_size": "1Gi",
    "checkpoints": "s3://c/x",
    "checkpoint_size": "1Mi",
}


def made(spec: FerrySpec, shm: int = 0) -> CheckedTemplate:
    return template_of(spec, shm, len(encode_spec(spec)))


def test_pods_of_a_template_differ_in_lineage_and_rank(spec: Callable[..., FerrySpec]) -> None:
    one = spec(**SETTINGS)
    assert made(msgspec.structs.replace(one, lineage="team.job.a", rank=1)) is made(
        msgspec.structs.replace(one, lineage="team.job.b", rank=2)
    )
    assert made(one) != made(one, 1 << 30)


def test_long_specs_are_not_kept(spec: Callable[..., FerrySpec]) -> None:
    long = spec(**SETTINGS, include="x" * MAX_CACHED_BYTES)
    assert made(long) == made(long)
    assert made(long) is not made(long)


def test_all_problems_at_once(spec: Callable[..., FerrySpec]) -> None:
    found = made(spec(dataset="file:///d", dataset_path="/etc/x", checkpoints="s3://c/x"))
    assert found.template is None
    for part in ("not a store", "would hide files", "the size of a checkpoint is unknown"):
        assert any(part in str(one) for one in found.problems)


def test_a_pod_changes_nothing_of_its_template(annotated_pod: Callable[..., Pod], policy: Policy) -> None:
    """What is injected into the next pods is the same, whatever was patched after it."""
    pod = annotated_pod(**SETTINGS)
    pod["spec"]["containers"][0]["resources"] = {"limits": {"memory": "64Mi"}}
    first = inject(pod, Namespace("team"), policy)
    kept = msgspec.json.encode(first.patch)
    patched = apply(pod, first.patch)
    for one in (*patched["spec"]["volumes"], *patched["spec"]["initContainers"]):
        one["name"] = "changed"
    assert msgspec.json.encode(inject(pod, Namespace("team"), policy).patch) == kept

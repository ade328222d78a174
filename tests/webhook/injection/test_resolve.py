from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_owner import KFP_RUN_LABEL
from podferry.contract.spec_json import decode_spec
from podferry.webhook.injection.inject import inject
from podferry.webhook.injection.resolve import ResolvedInjection, opted_in, resolve_injection
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import AllowedLocations, Defaults, Policy

Pod = dict[str, Any]
POLICY = Policy(image="registry.example.com/podferry:1")


def test_the_namespace_is_the_requests(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod(checkpoints="s3://c/$(namespace)", checkpoint_size="1Mi")
    del pod["metadata"]["namespace"]
    made = apply(pod, inject(pod, Namespace("other"), POLICY).patch)
    spec = decode_spec(made["metadata"]["annotations"]["podferry.io/spec"].encode())
    assert spec.checkpoints
    assert spec.checkpoints.uri == "s3://c/other"
    assert spec.lineage == "other.pod.digits"


def resolved(pod: Pod, **policy: Any) -> ResolvedInjection:
    return resolve_injection(pod, Namespace("team"), msgspec.structs.replace(POLICY, **policy))


def test_the_policys_defaults_fill_what_the_pod_leaves_out(annotated_pod: Callable[..., Pod]) -> None:
    defaults = Defaults(dataset_size=1 << 30, checkpoint_size=1 << 20, output_size=2 << 20)
    places = {"dataset": "s3://d/x", "checkpoints": "s3://c/x", "outputs": "s3://o/x"}
    spec = resolved(annotated_pod(**places), defaults=defaults).spec
    assert spec.checkpoints
    assert spec.outputs
    assert (spec.datasets[0].size, spec.checkpoints.size, spec.outputs.size) == (1 << 30, 1 << 20, 2 << 20)
    sizes = {"dataset_size": "3Mi", "checkpoint_size": "4Mi", "output_size": "5Mi"}
    spec = resolved(annotated_pod(**places, **sizes), defaults=defaults).spec
    assert spec.checkpoints
    assert spec.outputs
    assert [one.size for one in (*spec.datasets, spec.checkpoints, spec.outputs)] == [
        3 << 20,
        4 << 20,
        5 << 20,
    ]


def test_the_problems_of_all_steps_come_at_once(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod(dataset="s3://d/x", container="trian")
    pod["spec"]["containers"].append({"name": "istio-proxy"})
    with pytest.raises(InvalidSpec) as caught:
        resolved(pod, allowed=AllowedLocations(sources=("s3://other/*",)))
    text = str(caught.value)
    for part in ("istio-proxy is an ordinary container", "Did you mean 'train'", "s3://d/x", "dataset-size"):
        assert part in text
    assert len(caught.value.problems) == len(set(caught.value.problems)) == 4


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({"other.io/dataset": "s3://d"}, False),
        ({"podferry.io/dataset": "s3://d"}, True),
        ({"podferry.io/datset": "s3://d"}, True),
        ({"podferry.io/dataset": "s3://d", "podferry.io/inject": "false"}, False),
        ({"podferry.io/dataset": "s3://d", "podferry.io/inject": "true"}, True),
        ({"podferry.io/status": "injected"}, False),
    ],
)
def test_any_setting_opts_in(annotations: dict[str, str], expected: bool) -> None:
    assert opted_in({"metadata": {"annotations": annotations}}) is expected


def test_the_run_of_kfp_is_known(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod()
    assert resolved(pod).run_id is None
    pod["metadata"]["labels"] = {KFP_RUN_LABEL: "run-1"}
    assert resolved(pod).run_id == "run-1"


def test_a_kfp_step_without_sizes_gets_the_policys_or_else_its_own(recorded: Callable[[str], Pod]) -> None:
    def sizes(**policy: Any) -> tuple[int | None, int | None]:
        pod = recorded("executor-plain")
        pod["metadata"]["annotations"] |= {
            "podferry.io/checkpoints": "s3://c/x",
            "podferry.io/outputs": "s3://o/x",
        }
        spec = resolved(pod, **policy).spec
        assert spec.checkpoints
        assert spec.outputs
        return spec.checkpoints.size, spec.outputs.size

    assert sizes() == (1 << 30, 1 << 30)
    assert sizes(defaults=Defaults(checkpoint_size=8 << 20, output_size=4 << 20)) == (8 << 20, 4 << 20)

"""The step `cache`: the memory sum, and what it refuses."""

from __future__ import annotations

from html import escape
from pathlib import Path

import pytest
from kfp import dsl

from podferry.components.data.cache.component import cache
from podferry.components.data.cache.runner import CacheRequest, plan_cache
from podferry.components.data.dataset.runner import freeze_dataset
from podferry.contract.errors import Changed, InvalidSpec, Refused
from podferry.contract.quantity import parse_bytes
from podferry.contract.spec import PREFIX
from podferry.webhook.injection.inject import inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import SIDECAR
from podferry.webhook.policy.policy import Bounds, Policy


def test_recommends_sizes(digits: Path, capsys: pytest.CaptureFixture[str]) -> None:
    reference = freeze_dataset(str(digits)).reference
    request = CacheRequest(
        reference, checkpoint_size="100Mi", keep_local=2, shm_size="1Gi", train_memory="2Gi"
    )
    plan = plan_cache(request)
    # Checkpoints: 2 kept, one being written, one on its way. Sidecar: 17 + 100 + 288 MiB, and the files.
    assert plan.reference == reference
    assert (plan.dataset_size, plan.sidecar_memory) == ("17Mi", "406Mi")
    assert (plan.process_memory, plan.pod_memory) == ("3072Mi", "3878Mi")
    said = capsys.readouterr().out
    for row in (
        "data volume",
        "restored checkpoint",
        "checkpoint volume",
        "shared memory",
        "training",
        "pod",
    ):
        assert row in said


def test_without_checkpoints_there_are_none_in_the_sum(digits: Path) -> None:
    plan = plan_cache(CacheRequest(str(digits), train_memory="1Gi"))
    assert (plan.process_memory, plan.sidecar_memory) == ("1024Mi", "306Mi")


def test_plans_that_do_not_fit_are_refused_with_numbers(
    digits: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(Refused) as caught:
        plan_cache(CacheRequest(str(digits), dataset_size="1Mi", pod_memory="200Mi", train_memory="1Gi"))
    (pod,) = caught.value.problems
    assert "larger than its memory" in pod.what
    assert "200.0 MiB" in pod.measured
    assert "1314Mi" in pod.remedy
    (digits / "large.bin").write_bytes(bytes(1 << 20))
    with pytest.raises(Refused) as caught:
        plan_cache(CacheRequest(str(digits), dataset_size="1Mi", pod_memory="200Mi"))
    assert [problem.what for problem in caught.value.problems] == [
        "the dataset is larger than its volume",
        "the pod is larger than its memory",
    ]
    assert "data volume" in capsys.readouterr().out


def test_a_frozen_reference_that_does_not_fit_is_refused_like_any_other(digits: Path) -> None:
    (digits / "large.bin").write_bytes(bytes(1 << 20))
    reference = freeze_dataset(str(digits)).reference
    with pytest.raises(Refused, match="larger than its volume"):
        plan_cache(CacheRequest(reference, dataset_size="1Mi"))


def test_a_pod_that_shares_a_selection_needs_room_for_the_largest_part(digits: Path) -> None:
    for number in range(3):
        (digits / f"{number}.jpg").write_bytes(bytes((number + 1) << 20))
    reference = freeze_dataset(str(digits), include="*.jpg").reference
    entire = plan_cache(CacheRequest(reference, dataset_size="8Mi"))
    assert entire.reference == reference
    with pytest.raises(Refused, match="larger than its volume"):
        plan_cache(CacheRequest(reference, dataset_size="4Mi"))
    part = plan_cache(CacheRequest(reference, include="*.jpg", dataset_size="4Mi", shards=2))
    assert part.reference == reference
    with pytest.raises(Refused, match="holds no file"):
        plan_cache(CacheRequest(reference, include="*.jpg", shards=4))


def test_on_disk_the_data_takes_no_memory(digits: Path) -> None:
    (digits / "large.bin").write_bytes(bytes(64 << 20))
    memory = plan_cache(CacheRequest(str(digits)))
    disk = plan_cache(CacheRequest(str(digits), medium="disk"))
    assert (memory.dataset_size, disk.dataset_size) == ("81Mi", "81Mi")
    assert parse_bytes(memory.pod_memory) - parse_bytes(disk.pod_memory) >= 64 << 20


def test_another_selection_than_that_of_the_reference_is_refused(digits: Path) -> None:
    reference = freeze_dataset(str(digits), include="0.*").reference
    with pytest.raises(InvalidSpec, match=r"include selects other files .*\(1\.\*; frozen with 0\.\*\)"):
        plan_cache(CacheRequest(reference, include="1.*"))


def test_changed_data_fails(digits: Path) -> None:
    reference = freeze_dataset(str(digits)).reference
    (digits / "0.bin").unlink()
    with pytest.raises(Changed):
        plan_cache(CacheRequest(reference))


def test_all_errors_are_reported_at_once(digits: Path) -> None:
    with pytest.raises(InvalidSpec) as caught:
        plan_cache(
            CacheRequest(str(digits), dataset_size="big", train_memory="2 GB", pod_memory="-1Gi", shards=0)
        )
    said = str(caught.value)
    assert len(caught.value.problems) == 4
    assert all(name in said for name in ("dataset-size", "train_memory", "pod_memory", "shards"))


def test_the_component_returns_the_plan_and_writes_a_page(digits: Path, tmp_path: Path) -> None:
    report = dsl.HTML(name="report", uri=str(tmp_path / "report"), metadata={})
    outputs = cache.python_func(report=report, reference=str(digits), dataset_size="2Gi", pod_memory="8Gi")
    assert f"<td>{escape(outputs[0])}</td>" in (tmp_path / "report").read_text()
    assert outputs[1] == "2Gi"
    assert outputs[0].startswith(f"file://{digits}#sha256=")


def test_a_plan_that_does_not_fit_has_a_page_too(digits: Path, tmp_path: Path) -> None:
    with pytest.raises(Refused):
        plan_cache(CacheRequest(str(digits), pod_memory="1Mi"), report=str(tmp_path / "report"))
    assert "the pod is larger than its memory" in (tmp_path / "report").read_text()


@pytest.mark.parametrize("checkpoint_size", ["", "100Mi", "20Gi"])
@pytest.mark.parametrize("shm_size", ["", "1Gi"])
@pytest.mark.parametrize(("dataset_size", "keep_local"), [("", 1), ("3Gi", 2)])
def test_the_plan_is_the_pod_that_the_webhook_makes(
    digits: Path, checkpoint_size: str, shm_size: str, dataset_size: str, keep_local: int
) -> None:
    request = CacheRequest(
        str(digits),
        dataset_size,
        checkpoint_size,
        keep_local,
        shm_size,
        train_memory="16Gi",
        pod_memory="200Gi",
    )
    plan = plan_cache(request)
    settings = {
        # Its place is the store of a cluster.
        "dataset": plan.reference.replace(f"file://{digits}", "s3://data/digits"),
        "dataset-size": dataset_size,
        "checkpoints": checkpoint_size and "s3://models/digits",
        "checkpoint-size": checkpoint_size,
        "keep-local": checkpoint_size and str(keep_local),
        "shm-size": shm_size,
    }
    memory = injected_memory(settings, plan.process_memory)
    assert memory[SIDECAR] == parse_bytes(plan.sidecar_memory)
    # Both figures are rounded up to MiB.
    assert 0 <= sum(memory.values()) - parse_bytes(plan.pod_memory) <= 1 << 20


def injected_memory(settings: dict[str, str], memory: str) -> dict[str, int]:
    """Memory limits by container of a KFP step that `gpu_train(memory=…)` made, after admission."""
    trainer = {"name": "main", "image": "pytorch", "resources": {"limits": {"memory": memory}}}
    annotations = {PREFIX + name: text for name, text in settings.items() if text}
    pod = {"metadata": {"name": "train", "annotations": annotations}, "spec": {"containers": [trainer]}}
    bounds = Bounds(trainer_raise=100 << 30)
    decision = inject(pod, Namespace("team"), Policy(image="registry.example.com/podferry:1", bounds=bounds))
    assert decision.outcome == "injected", decision.problems
    spec = apply(pod, decision.patch)["spec"]
    containers = [*(one for one in spec["initContainers"] if one["name"] == SIDECAR), *spec["containers"]]
    return {one["name"]: parse_bytes(one["resources"]["limits"]["memory"]) for one in containers}

"""Volumes and mounts: for any number of datasets in one pod, and next to the user's own mounts."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.memory_sum import memory_sum
from podferry.contract.spec import MAX_DATASET_NAME_LENGTH, PREFIX, FerrySpec
from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.injection.volumes import (
    has_shm,
    mount_problems,
    volume_names,
    volume_problems,
    volumes,
)
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Bounds, Policy

LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
POLICY = Policy(image="registry.example.com/podferry:1", bounds=Bounds(sidecar_memory=16 * 1024**3))
ANY = st.sampled_from(["", "a", "a-2", "2", "train", "x" * MAX_DATASET_NAME_LENGTH])
SIZES = st.integers(1, 8 * 1024)
MEDIA = st.sampled_from(["memory", "disk", "auto"])
SETTINGS = st.dictionaries(ANY, st.tuples(SIZES, MEDIA, st.booleans()), min_size=1, max_size=5)


def annotated(settings: dict[str, tuple[int, str, bool]]) -> dict[str, str]:
    found = {}
    for name, (size, medium, secret) in settings.items():
        end = f".{name}" if name else ""
        found |= {
            f"dataset{end}": f"s3://d/{name}",
            f"dataset-size{end}": f"{size}Mi",
            f"medium{end}": medium,
        }
        found |= {f"dataset-secret{end}": "reader"} if secret else {}
    return {PREFIX + key: text for key, text in found.items()}


@given(SETTINGS, st.booleans())
def test_every_dataset_has_its_own_resources(
    settings: dict[str, tuple[int, str, bool]], limited: bool
) -> None:
    resources = {"limits": {"ephemeral-storage": "1Gi"}} if limited else {}
    pod: dict[str, Any] = {
        "metadata": {"name": "p", "annotations": annotated(settings)},
        "spec": {"containers": [{"name": "train", "resources": resources}]},
    }
    decision = inject(pod, Namespace("team"), POLICY)
    memory = sum(size for size, medium, _ in settings.values() if medium == "memory")
    if decision.outcome is not InjectionOutcome.INJECTED:
        assert memory > 14 * 1024
        return
    spec = apply(pod, decision.patch)["spec"]
    sidecar, trainer = spec["initContainers"][0], spec["containers"][0]
    volumes = {one["name"]: one for one in spec["volumes"]}
    assert len(volumes) == len(spec["volumes"])
    assert all(LABEL.fullmatch(name) for name in volumes)
    for container in (sidecar, trainer):
        mounts = container["volumeMounts"]
        assert len({one["mountPath"] for one in mounts}) == len(mounts)
        assert {one["name"] for one in mounts} <= set(volumes)
    data = [one for one in trainer["volumeMounts"] if one["name"].startswith("podferry-data")]
    assert len(data) == len(settings)
    assert all(one["readOnly"] for one in data)
    variables = [one["value"] for one in trainer["env"] if one["name"].startswith("PODFERRY_DATASET")]
    assert sorted(variables) == sorted(one["mountPath"] for one in data)
    assert len({one["name"] for one in trainer["env"]}) == len(trainer["env"])
    agents = {one["mountPath"]: one["name"] for one in sidecar["volumeMounts"]}
    flags = [flag.partition("=")[2] for flag in sidecar["args"] if flag.startswith("--dataset-dir=")]
    assert sorted(agents[flag.rpartition("=")[2]] for flag in flags) == sorted(one["name"] for one in data)
    on_disk = [
        int(volumes[one["name"]]["emptyDir"]["sizeLimit"].removesuffix("Mi"))
        for one in data
        if "medium" not in volumes[one["name"]]["emptyDir"]
    ]
    requested_disk = sum(medium == "disk" for _, medium, _ in settings.values())
    assert len(on_disk) >= requested_disk
    storage = f"{sum(on_disk) + 64}Mi" if on_disk or limited else None
    assert sidecar["resources"]["requests"].get("ephemeral-storage") == storage
    assert sidecar["resources"]["limits"].get("ephemeral-storage") == (storage if limited else None)


@pytest.mark.parametrize(
    ("mount", "expected"),
    [
        ({"mountPath": "/data"}, ""),
        ({"mountPath": "/data/set-2"}, ""),
        ({"mountPath": "/data/set/"}, "on or below podferry's directory"),
        ({"mountPath": "/data/set/deep"}, "on or below podferry's directory"),
        ({"mountPath": "/data", "readOnly": True}, "cannot create its mount point"),
        ({"mountPath": "/data", "name": "claim"}, "cannot create its mount point"),
        ({"mountPath": "/data", "subPath": "x"}, "where nested mounts stay empty"),
        ({"mountPath": "/data/set", "name": "podferry-of-mine"}, "on or below podferry's directory"),
    ],
)
def test_mounts_that_podferrys_cannot_be_combined_with(
    spec: Callable[..., FerrySpec], mount: dict[str, Any], expected: str
) -> None:
    volumes = [{"name": "own", "emptyDir": {}}, {"name": "claim", "persistentVolumeClaim": {}}]
    container = {"name": "train", "volumeMounts": [{"name": "own", **mount}]}
    pod = {"spec": {"containers": [container], "volumes": volumes}}
    wanted = spec(dataset="s3://d/x", dataset_size="1Gi", dataset_path="/data/set")
    problems = [str(problem) for problem in mount_problems(pod, container, wanted)]
    assert len(problems) == bool(expected)
    assert all(expected in problem and "podferry.io/dataset-path" in problem for problem in problems)


def test_only_volumes_of_the_very_names_collide(spec: Callable[..., FerrySpec]) -> None:
    wanted = spec(
        **{
            "dataset": "s3://d/x",
            "dataset-size": "1Mi",
            "dataset.val": "s3://d/y",
            "dataset-size.val": "1Mi",
        },
        **{"checkpoints": "s3://c/x", "checkpoint-size": "1Mi", "secret": "s"},
    )
    theirs = ("podferry-of-mine", "podferry-data-backup", "podferry-outputs", "podferry-data-secret-val")
    pod = {"spec": {"volumes": [{"name": name, "emptyDir": {}} for name in theirs]}}
    names = frozenset(volume_names(wanted))
    assert list(volume_problems(pod, names)) == []
    added = [*volumes(wanted, memory_sum(wanted), with_shm=True)]
    taken = {"spec": {"volumes": [{"name": one["name"]} for one in added]}}
    assert {problem.measured for problem in volume_problems(taken, names)} == {one["name"] for one in added}


def test_shm_is_found_at_its_path_only() -> None:
    for path, expected in (("/dev/shm", True), ("/dev/shm/", True), ("/dev", False), ("/dev/shm/x", False)):
        assert has_shm({"volumeMounts": [{"name": "own", "mountPath": path}]}) is expected
    assert not has_shm({"volumeMounts": None})

"""Random pods, by seed: real shapes with a few random changes each.

The changes keep a pod's types, since an API server decodes a pod before webhooks see it; `spoiled` breaks
them, as only a broken or hostile client would. The shapes are golden and recorded pods of the tests.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import yaml

from faults.pod_values import (
    ANNOTATIONS,
    CONTAINER_NAMES,
    ENVIRONMENTS,
    HOSTILE,
    JUNK,
    LABELS,
    MOUNT_PATHS,
    OWNERS,
    POD_SETTINGS,
    RESOURCES,
    SECURITY,
    TEMPLATE,
    WORKLOADS,
)
from podferry.contract.spec import PREFIX

Pod = dict[str, Any]
Change = Callable[[Random, Pod], None]

TESTS = Path(__file__).parents[1] / "tests"


def known_shapes() -> list[Pod]:
    """Every golden and recorded pod of the tests, with a namespace of its own in none of them."""
    golden = (TESTS / "webhook" / "golden").glob("*/pod.yaml")
    recorded = (TESTS / "data" / "kfp-pods").glob("*.json")
    shapes = [yaml.safe_load(path.read_text()) for path in sorted(golden)]
    return shapes + [json.loads(path.read_text()) for path in sorted(recorded)]


def random_pod(seed: int, shapes: Sequence[Pod]) -> Pod:
    """The pod of a seed: one of the shapes with one to six changes."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    pod = copy.deepcopy(random.choice(shapes))
    pod["metadata"]["name"] = f"random-{seed}"
    pod["metadata"].pop("generateName", None)
    for change in random.choices(CHANGES, k=random.randint(1, 6)):
        change(random, pod)
    return pod


def random_workload(seed: int, pod: Pod) -> Pod:
    """A workload of the seed whose pods are made from this one."""
    kind, spec = WORKLOADS[seed % len(WORKLOADS)]
    template = json.dumps({key: pod[key] for key in ("metadata", "spec")})
    text = json.dumps(spec).replace(json.dumps(TEMPLATE), template)
    return {**kind, "metadata": {"name": f"random-{seed}"}, "spec": json.loads(text)}


def spoiled(seed: int, pod: Pod) -> Any:
    """The pod, or another document, with junk of another type at a random place."""
    random = Random(seed)  # noqa: S311 - repeatable, not secret
    document = {"whole": copy.deepcopy(pod)}
    parent, key = random.choice(list(_places(document)))
    parent[key] = random.choice(JUNK)
    return document["whole"]


def _places(node: Any) -> list[tuple[Any, Any]]:
    keys = list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ()
    return [place for key in keys for place in ((node, key), *_places(node[key]))]


def _annotate(random: Random, pod: Pod) -> None:
    name = random.choice(list(ANNOTATIONS))
    # Mostly valid, or nearly every pod would be refused for one of several annotations.
    usual, unusual = ANNOTATIONS[name][:1], random.choice((ANNOTATIONS[name], HOSTILE))
    _members(pod["metadata"], "annotations")[PREFIX + name] = random.choice(
        random.choice((usual, usual, unusual))
    )


def _forget_annotation(random: Random, pod: Pod) -> None:
    annotations = _members(pod["metadata"], "annotations")
    if annotations:
        del annotations[random.choice(list(annotations))]


def _label(random: Random, pod: Pod) -> None:
    _members(pod["metadata"], "labels").update(random.choice(LABELS))


def _own(random: Random, pod: Pod) -> None:
    kind = random.choice(OWNERS)
    owner = {"apiVersion": "example.com/v1", "kind": kind, "name": "owner", "uid": "u-1", "controller": True}
    pod["metadata"]["ownerReferences"] = random.choice(([owner], [], None))


def _set(random: Random, pod: Pod) -> None:
    name, value = random.choice(POD_SETTINGS)
    pod["spec"][name] = copy.deepcopy(value)


def _secure(random: Random, pod: Pod) -> None:
    where = random.choice((pod["spec"], _any_container(random, pod)))
    chosen = dict(random.choice(SECURITY) or {})
    if where is not pod["spec"]:
        chosen.pop("fsGroup", None)
    where["securityContext"] = chosen or None


def _limit(random: Random, pod: Pod) -> None:
    _any_container(random, pod)["resources"] = copy.deepcopy(random.choice(RESOURCES))


def _equip(random: Random, pod: Pod) -> None:
    _any_container(random, pod)["env"] = copy.deepcopy(random.choice(ENVIRONMENTS))


def _contain(random: Random, pod: Pod) -> None:
    kind = random.choice(("containers", "initContainers"))
    made: Pod = {"name": random.choice(CONTAINER_NAMES), "image": "helper:1"}
    if kind == "initContainers" and random.random() < 0.5:
        made["restartPolicy"] = "Always"
    _items(pod["spec"], kind).insert(0, made)


def _mount(random: Random, pod: Pod) -> None:
    name = random.choice(("scratch", "podferry-data", "podferry-mine"))
    _items(pod["spec"], "volumes").append(
        {"name": name, "emptyDir": random.choice(({}, {"medium": "Memory"}))}
    )
    mount: Pod = {"name": name, "mountPath": random.choice(MOUNT_PATHS)}
    if random.random() < 0.3:
        mount["subPath"] = "part"
    _items(_any_container(random, pod), "volumeMounts").append(mount)


def _any_container(random: Random, pod: Pod) -> Pod:
    chosen: Pod = random.choice(pod["spec"]["containers"])
    return chosen


def _members(parent: Pod, name: str) -> Pod:
    parent[name] = parent.get(name) or {}
    made: Pod = parent[name]
    return made


def _items(parent: Pod, name: str) -> list[Pod]:
    parent[name] = parent.get(name) or []
    made: list[Pod] = parent[name]
    return made


CHANGES: Sequence[Change] = (
    *([_annotate] * 5),
    _forget_annotation,
    _label,
    _own,
    _set,
    _set,
    _secure,
    _limit,
    _equip,
    _contain,
    _mount,
)

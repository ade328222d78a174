"""Finds pods in YAML or JSON documents, and the pod templates of controllers. Pure.

Any object with `spec.containers`, at any depth, is a pod or a pod template, so Job, CronJob, JobSet,
PaddleJob, Deployment and lists of them need no rules of their own. A template becomes the first pod that its
controller would create.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from podferry.cli.yaml_documents import read_documents
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.pod_owner import pod_owner_of
from podferry.contract.pod_rank import POD_INDEX
from podferry.contract.pod_templates import pod_templates_of
from podferry.contract.spec import PREFIX

DEFAULT_IMAGE = "podferry"
"""The image of podferry's containers if no policy is given."""
NodePath = tuple[str, ...]
"""Keys and indexes that lead from a document to an object in it."""


class FoundPod(msgspec.Struct, frozen=True):
    """A pod, or the first one of a template.

    Attributes:
        title: Kind and name of the object that holds it, for people.
        pod: The fields of its plain JSON that annotations are explained with.
        complete: All of its plain JSON, as the API server would send it.
        notes: Assumptions.
        problems: Errors in its annotations as text.
    """

    title: str
    pod: dict[str, Any]
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    complete: dict[str, Any] = {}


class _OwnerFields(msgspec.Struct):
    kind: str
    name: str
    controller: bool = False


class _MetadataFields(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    generate_name: str = ""
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    owner_references: list[_OwnerFields] | None = None


class _ContainerFields(msgspec.Struct, omit_defaults=True):
    name: str = ""
    command: list[str] | None = None
    env: list[dict[str, Any]] | None = None


class _SpecFields(msgspec.Struct):
    containers: list[_ContainerFields]


class _PodFields(msgspec.Struct):
    """The fields that `explain` needs; the others are dropped."""

    spec: _SpecFields
    metadata: _MetadataFields


def read_pods(text: str, source: str) -> list[FoundPod]:
    """Find all pods in YAML or JSON documents. Raises `InvalidSpec` for other text, or if there is no pod."""
    documents = read_documents(text, source)
    pods = find_pods(documents, source)
    if not pods:
        kinds = ", ".join(_kind(document) for document in documents) or "no document"
        remedy = "Give a Pod, or an object with a pod template; else use --annotation"
        raise InvalidSpec.of(f"{source} contains no pod", kinds, remedy)
    return pods


def find_pods(documents: Iterable[Any], source: str) -> list[FoundPod]:
    """All pods in documents; raises `InvalidSpec` if one is malformed."""
    return [pod for document in documents for pod in _pods(document, source)]


def bare_pod(annotations: Mapping[str, str]) -> FoundPod:
    """A pod of which only the annotations are known."""
    pod = {"metadata": {"annotations": dict(annotations)}, "spec": {"containers": []}}
    return FoundPod("annotations", pod)


def namespace_of(pod: Mapping[str, Any], default: str) -> str:
    """The namespace that a pod sets, else the default."""
    return str(_get(pod, "metadata", "namespace") or default)


def flattened(documents: Iterable[Any]) -> Iterator[Any]:
    """Documents, with the items of lists in their place."""
    for document in documents:
        items = document.get("items") if isinstance(document, dict) else None
        yield from items if isinstance(items, list) else [document]


def _pods(document: Any, source: str) -> Iterator[FoundPod]:
    for top in flattened([document]):
        templates = list(_templates(top, (), set()))
        for path, node in templates:
            yield _read_pod(top, path, node, source, several=len(templates) > 1)


def _templates(node: Any, path: NodePath, seen: set[int]) -> Iterator[tuple[NodePath, Any]]:
    """(path, object) of every object with `spec.containers`; YAML's anchors may make cycles."""
    if id(node) in seen or not isinstance(node, dict | list):
        return
    seen.add(id(node))
    if isinstance(node, dict):
        spec = node.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield path, node
            return
    children = node.items() if isinstance(node, dict) else enumerate(node)
    for step, child in children:
        yield from _templates(child, (*path, str(step)), seen)


def _read_pod(top: Any, path: NodePath, node: Any, source: str, *, several: bool) -> FoundPod:
    title = f"{_kind(top)} {_name(top)}".strip()
    first = _first_pod(top, path, node)
    try:
        pod = msgspec.convert(first, _PodFields)
    except msgspec.ValidationError as error:
        measured = f"{'.'.join(path) or 'the pod'}: {error}"
        raise InvalidSpec.of(f"{source}: {title} is malformed", measured, "Correct it") from error
    problems = _make_annotations_text(pod.metadata)
    notes: list[str] = []
    if path:
        title = f"{title}, {'.'.join(path)}" if several else title
        notes = [*_apply_controller(top, pod.metadata), *_rank_shown(msgspec.to_builtins(pod))]
        problems += _misplaced_annotations(top, path)
    fields = msgspec.to_builtins(pod)
    complete = {**first, "metadata": {**first["metadata"], **fields["metadata"]}}
    return FoundPod(title, fields, tuple(notes), tuple(problems), complete)


def _first_pod(top: Any, path: NodePath, node: Any) -> dict[str, Any]:
    """The first pod of a template, as its controller would make it if its kind is known."""
    metadata = {} if node.get("metadata") is None else node["metadata"]
    plain = {**node, "metadata": metadata}
    if not path or not all(isinstance(one, dict) for one in (metadata, node["spec"])):
        return plain
    if _kind(top) == "CronJob" and path[:2] == ("spec", "jobTemplate"):
        made = {**top["spec"]["jobTemplate"], "apiVersion": "batch/v1", "kind": "Job"}
        return _first_pod({**made, "metadata": {"name": f"{_name(top)}-0"}}, ("spec", *path[3:]), node)
    known = (one.pod for one in pod_templates_of(top) if one.steps == path)
    return next(known, plain)


def _make_annotations_text(metadata: _MetadataFields) -> list[Problem]:
    """Convert annotations to text; Kubernetes refuses others, which YAML makes of `true` and `2`."""
    annotations = metadata.annotations or {}
    metadata.annotations = {name: _scalar(value) for name, value in annotations.items()}
    return [
        Problem(f"{name}: the value is not text", _scalar(value) or "null", f'Quote it: "{_scalar(value)}"')
        for name, value in annotations.items()
        if not isinstance(value, str)
    ]


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _misplaced_annotations(top: Any, path: NodePath) -> list[Problem]:
    """Annotations of podferry on the controller itself, which nothing reads."""
    annotations = _get(top, "metadata", "annotations")
    ours = [name for name in annotations or {} if str(name).startswith(PREFIX)]
    remedy = f"Move them to {'.'.join(path)}.metadata.annotations"
    what = f"annotations on the {_kind(top)} itself reach no pod"
    return [Problem(what, ", ".join(ours), remedy)] if ours else []


def _rank_shown(pod: dict[str, Any]) -> Iterator[str]:
    with suppress(InvalidSpec):
        rank = pod_owner_of(pod).rank
        if rank is not None:
            yield f"shown is the first pod, rank {rank}"


def _apply_controller(top: Any, metadata: _MetadataFields) -> list[str]:
    """Set what a controller sets on its first pod; return the assumptions."""
    kind, name = _kind(top), _name(top)
    namespace = _get(top, "metadata", "namespace")
    if metadata.namespace is None and isinstance(namespace, str):
        metadata.namespace = namespace
    notes = []
    if kind == "CronJob":
        kind, name = "Job", f"{name}-0"
        each = f"Each has a lineage of its own unless {PREFIX}lineage names one"
        notes = [f"a CronJob names each Job by its time; {name} stands for one. {each}"]
    if kind == "StatefulSet":
        metadata.labels = {**(metadata.labels or {}), POD_INDEX: "0"}
    metadata.owner_references = metadata.owner_references or [_OwnerFields(kind, name, controller=True)]
    return notes


def _get(node: Any, *path: str) -> Any:
    """The value at a path of keys, or None."""
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node


def _kind(document: Any) -> str:
    return str(document.get("kind") or "object") if isinstance(document, dict) else type(document).__name__


def _name(document: Any) -> str:
    metadata = _get(document, "metadata")
    return str(_get(metadata, "name") or _get(metadata, "generateName") or "")

"""Finds the pods in YAML or JSON documents: pods themselves, and what controllers make them of. Pure.

Whatever holds `spec.containers` is a pod or a pod's template, at any depth: so Job, CronJob, JobSet,
PaddleJob, Deployment and lists of them need no rules of their own. A pod of a template is shown as its
controller would make the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import yaml

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.pod_owner import COMPLETION_INDEX, JOBSET
from podferry.contract.spec import PREFIX

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's where PyYAML was built with it: ten times as fast."""
NO_PATH = "metadata.annotations"


class Found(msgspec.Struct, frozen=True):
    """A pod, or the first one that a template gives.

    Attributes:
        title: Kind and name of what it was found in, for people.
        pod: Its plain JSON, as the API server would send it.
        notes: What was assumed.
        problems: What is wrong with its annotations as text.
    """

    title: str
    pod: dict[str, Any]
    notes: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Owner(msgspec.Struct):
    kind: str
    name: str
    controller: bool = False


class _Metadata(msgspec.Struct, rename="camel", omit_defaults=True):
    name: str = ""
    generate_name: str = ""
    namespace: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, Any] | None = None
    owner_references: list[_Owner] | None = None


class _Container(msgspec.Struct, omit_defaults=True):
    name: str = ""
    command: list[str] | None = None


class _Spec(msgspec.Struct):
    containers: list[_Container]


class _Pod(msgspec.Struct):
    spec: _Spec
    metadata: _Metadata | None = None


def read_pods(text: str, source: str) -> list[Found]:
    """All pods in a text of YAML or JSON documents.

    Raises:
        InvalidSpec: It is no YAML, or holds no pod.
    """
    try:
        documents = [document for document in yaml.load_all(text, Loader=LOADER) if document is not None]
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # PyYAML raises ValueError for a date that does not exist.
        what = " ".join(str(error).split())
        raise InvalidSpec.of(f"{source} cannot be read as YAML", what, "Correct it") from error
    found = [pod for document in documents for pod in _pods(document, source)]
    if not found:
        kinds = ", ".join(_kind(document) for document in documents) or "no document"
        remedy = "Give a Pod, or an object with a pod template; else use --annotation"
        raise InvalidSpec.of(f"{source} holds no pod", kinds, remedy)
    return found


def bare_pod(annotations: Mapping[str, str]) -> Found:
    """A pod of which nothing is known but its annotations."""
    return Found("annotations", {"metadata": {"annotations": dict(annotations)}, "spec": {"containers": []}})


def _pods(document: Any, source: str) -> Iterator[Found]:
    for top in document["items"] if _is_list(document) else [document]:
        for path, node in _templates(top, (), set()):
            yield _found(top, path, node, source)


def _is_list(document: Any) -> bool:
    return isinstance(document, dict) and isinstance(document.get("items"), list)


def _templates(node: Any, path: tuple[str, ...], seen: set[int]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """(path, node) of all that holds `spec.containers`; YAML's anchors may make circles of nodes."""
    if id(node) in seen or not isinstance(node, dict | list):
        return
    seen.add(id(node))
    if isinstance(node, dict):
        spec = node.get("spec")
        if isinstance(spec, dict) and "containers" in spec:
            yield path, node
            return
    steps = node.items() if isinstance(node, dict) else enumerate(node)
    for step, child in steps:
        yield from _templates(child, (*path, str(step)), seen)


def _found(top: Any, path: tuple[str, ...], node: Any, source: str) -> Found:
    title = f"{_kind(top)} {_name(top)}".strip()
    try:
        pod = msgspec.convert(node, _Pod)
    except msgspec.ValidationError as error:
        place = ".".join(path) or "the pod"
        raise InvalidSpec.of(f"{source}: {title} is malformed", f"{place}: {error}", "Correct it") from error
    pod.metadata = pod.metadata or _Metadata()
    problems = _make_text(pod.metadata)
    notes: list[str] = []
    if path:
        title = f"{title}, {'.'.join(path)}" if len(_all_paths(top)) > 1 else title
        notes = _as_made_by(top, path, pod.metadata)
        problems += _misplaced(top, path)
    return Found(title, msgspec.to_builtins(pod), tuple(notes), tuple(problems))


def _all_paths(top: Any) -> list[tuple[str, ...]]:
    return [path for path, _ in _templates(top, (), set())]


def _make_text(metadata: _Metadata) -> list[Problem]:
    """Annotations as text; Kubernetes refuses others, which YAML makes of `true` and `2`."""
    given = metadata.annotations or {}
    metadata.annotations = {
        name: value if isinstance(value, str) else _scalar(value) for name, value in given.items()
    }
    return [
        Problem(f"{name}: the value is no text", _scalar(value) or "null", f'Quote it: "{_scalar(value)}"')
        for name, value in given.items()
        if not isinstance(value, str)
    ]


def _scalar(value: Any) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _misplaced(top: Any, path: tuple[str, ...]) -> list[Problem]:
    """Our annotations on the controller, where nothing reads them."""
    annotations = _below(top, "metadata", "annotations")
    ours = [name for name in annotations or {} if str(name).startswith(PREFIX)]
    remedy = f"Move them to {'.'.join(path)}.{NO_PATH}"
    what = f"annotations on the {_kind(top)} itself reach no pod"
    return [Problem(what, ", ".join(ours), remedy)] if ours else []


def _as_made_by(top: Any, path: tuple[str, ...], metadata: _Metadata) -> list[str]:
    """Fill in what a controller gives its first pod; what was assumed."""
    kind, name = _kind(top), _name(top)
    outer = _below(top, "metadata", "namespace")
    if metadata.namespace is None and isinstance(outer, str):
        metadata.namespace = outer
    notes = []
    if kind == "CronJob":
        kind, name = "Job", f"{name}-0"
        each = f"Each has a lineage of its own unless {PREFIX}lineage names one"
        notes = [f"a CronJob names each Job by its time; {name} stands for one. {each}"]
    marks = _first_marks(top, path, kind)
    if marks:
        notes.append("shown is the first pod, rank 0")
    metadata.labels = {**(metadata.labels or {}), **marks}
    metadata.owner_references = metadata.owner_references or [_Owner(kind, name, controller=True)]
    return notes


def _first_marks(top: Any, path: tuple[str, ...], kind: str) -> dict[str, str]:
    """The labels by which a controller numbers its pods, as its first pod has them."""
    if kind == "Job":
        modes = (
            _below(top, "spec", "completionMode"),
            _below(top, "spec", "jobTemplate", "spec", "completionMode"),
        )
        return {COMPLETION_INDEX: "0"} if "Indexed" in modes else {}
    if kind == "JobSet":
        return {COMPLETION_INDEX: "0", f"{JOBSET}job-index": "0"} | _replicas(top, path)
    return {
        "PaddleJob": {"training.kubeflow.org/replica-index": "0"},
        "StatefulSet": {"apps.kubernetes.io/pod-index": "0"},
    }.get(kind, {})


def _replicas(top: Any, path: tuple[str, ...]) -> dict[str, str]:
    """How many Jobs there are of the replicated one that a path leads through."""
    jobs = _below(top, "spec", "replicatedJobs")
    number = int(path[2]) if path[:2] == ("spec", "replicatedJobs") else 0
    count = _below(jobs[number], "replicas") if isinstance(jobs, list) else None
    return {f"{JOBSET}replicatedjob-replicas": str(count)} if isinstance(count, int) else {}


def _below(node: Any, *path: str) -> Any:
    for step in path:
        node = node.get(step) if isinstance(node, dict) else None
    return node


def _kind(document: Any) -> str:
    return str(document.get("kind") or "object") if isinstance(document, dict) else type(document).__name__


def _name(document: Any) -> str:
    names = (_below(document, "metadata", "name"), _below(document, "metadata", "generateName"))
    return next((str(name) for name in names if name), "")

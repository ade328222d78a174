"""What is wrong with a pod, read from its status: refusals of podferry, exit codes, images, scheduling.

Exit codes: docs/exit-codes.md. Reasons of waiting containers: Kubernetes, `pkg/kubelet/images/types.go` and
`pkg/kubelet/kuberuntime/kuberuntime_container.go`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from podferry.components.diagnosis.why.run_pods import Pod, name_of, phase_of, task_of
from podferry.contract.errors import Problem
from podferry.contract.exit_codes import EXIT_DOUBTFUL, EXIT_NEVER, EXIT_NOT_DURABLE
from podferry.trainer.own_pod import missing_injection
from podferry.webhook.pod.pod_json import GATE, SIDECAR, all_containers_of

MAIN = "main"
PROBLEM = re.compile(
    r"(?P<what>[^()]+?)(?: \((?P<measured>[^()]*(?:\([^()]*\)[^()]*)*)\))?\.(?: (?P<remedy>.+))?"
)
PREFIX = "podferry: "
"""How podferry's messages begin."""
IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "ImageInspectError"}
)
START_REASONS = frozenset({"CreateContainerConfigError", "CreateContainerError", "RunContainerError"})
OOM_KILLED = "OOMKilled"
SIGKILL, SIGTERM = 137, 143
CODES: Mapping[int, tuple[str, str]] = MappingProxyType(
    {
        EXIT_NOT_DURABLE: (
            "training succeeded, but what it wrote is not durable",
            "Look for the reason above",
        ),
        EXIT_DOUBTFUL: (
            "nothing proves that the newest checkpoint is complete",
            "Confirm it with podferry checkpoints confirm, or rename finished files into place",
        ),
        EXIT_NEVER: ("refused: retrying cannot help", "Follow the remedies of the reasons"),
        126: ("the command cannot be executed", "Make the file executable, or call its interpreter"),
        127: ("there is no such command in the image", "Check the image and the command"),
        SIGKILL: (
            "killed by SIGKILL",
            "Look at the node and the pod's events: memory, or a grace that was too short",
        ),
        SIGTERM: (
            "ended by SIGTERM: the pod was deleted or the run cancelled",
            "Run it again: training resumes",
        ),
    }
)
"""What the exit code of a container means, and the remedy."""
NO_NODE = (
    "no node can take the pod",
    "Ask for less memory or fewer GPUs, or add a node; `cache` plans the memory of a pod",
)
Status = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Finding:
    """A task that did not succeed.

    Attributes:
        task: Its name.
        pod: Its pod.
        problems: What is wrong with it, the most useful first.
        log_of: The container whose log says more; empty if the problems say it all.
    """

    task: str
    pod: str
    problems: tuple[Problem, ...]
    log_of: str = ""


def merged(findings: Iterable[Finding], more: Iterable[Finding]) -> list[Finding]:
    """Findings, and more about the same pods or others: what is known already is left out."""
    found = {(one.task, one.pod): one for one in findings}
    for one in more:
        before = found.get((one.task, one.pod))
        known = set(map(attrgetter("what"), before.problems)) if before else set()
        new = tuple(problem for problem in one.problems if problem.what not in known)
        found[one.task, one.pod] = replace(before, problems=(*before.problems, *new)) if before else one
    return list(found.values())


def finding_of(pod: Pod) -> Finding | None:
    """What is wrong with a pod that has not succeeded; None if it still runs without a problem."""
    problems = tuple(_problems(pod))
    failed = phase_of(pod) == "Failed"
    if not problems and not failed:
        return None
    last = _status(pod, MAIN).get("terminated") or {}
    log_of = MAIN if last.get("exitCode") else ""
    if not problems:
        status = pod.get("status") or {}
        measured = (
            ": ".join(filter(None, (status.get("reason"), status.get("message")))) or "no reason is given"
        )
        problems = (Problem("the pod failed", measured, "Look at its events and logs"),)
    return Finding(task_of(pod), name_of(pod), problems, log_of)


def _problems(pod: Pod) -> Iterator[Problem]:
    yield from _without_agent(pod)
    yield from _scheduling(pod)
    yield from _ended_by_the_node(pod)
    for container in all_containers_of(pod):
        name = container["name"]
        state = _status(pod, name)
        yield from _waiting(container, state.get("waiting") or {})
        ended = state.get("terminated") or {}
        if name in {GATE, SIDECAR}:
            yield from _of_podferry(name, ended)
        elif ended.get("exitCode"):
            yield _exit(container, ended)


def _without_agent(pod: Pod) -> Iterator[Problem]:
    """A failed pod that opted in, and that the webhook has not changed."""
    injected = {container["name"] for container in all_containers_of(pod)} & {GATE, SIDECAR}
    problem = missing_injection(pod) if phase_of(pod) == "Failed" and not injected else None
    yield from () if problem is None else (problem,)


def _scheduling(pod: Pod) -> Iterator[Problem]:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "Unschedulable":
            yield Problem(NO_NODE[0], condition.get("message", ""), NO_NODE[1])


def _ended_by_the_node(pod: Pod) -> Iterator[Problem]:
    status = pod.get("status") or {}
    if phase_of(pod) == "Failed" and status.get("reason"):
        remedy = "Run it again: training resumes from its newest sure checkpoint"
        yield Problem(f"the pod was ended: {status['reason']}", status.get("message", ""), remedy)


def _waiting(container: Mapping[str, Any], waiting: Status) -> Iterator[Problem]:
    reason, message = waiting.get("reason", ""), waiting.get("message", "")
    if reason in IMAGE_REASONS:
        what = f"the image of {container['name']} cannot be pulled: {container.get('image', '')}"
        yield Problem(what, f"{reason}: {message}", "Check its name, and the Secret of its registry")
    elif reason in START_REASONS:
        what = f"{container['name']} cannot be started"
        yield Problem(what, f"{reason}: {message}", "Check the Secrets, ConfigMaps and volumes that it names")


def _of_podferry(name: str, ended: Status) -> Iterator[Problem]:
    """The reasons of the gate, and what the agent could not upload."""
    message, code = str(ended.get("message") or ""), ended.get("exitCode")
    if not message and code:
        yield Problem(f"{name} failed", f"exit code {code}", "Look at its log")
    if message and (code or name == SIDECAR):
        lines = message.strip().removeprefix(PREFIX).splitlines()
        again = f"exit code {code}: {_retry(code)}" if code else ""
        yield from (problem_in(line.strip(), again) for line in lines if line.strip())


def problem_in(line: str, addition: str = "") -> Problem:
    """The problem that `str(Problem)` has written as a line; one that cannot be divided is all `what`."""
    match = PROBLEM.fullmatch(line)
    found = Problem(**match.groupdict("")) if match else Problem(line.rstrip("."))
    remedy = "; ".join(filter(None, (found.remedy.rstrip("."), addition)))
    return Problem(found.what, found.measured, remedy)


def _retry(code: int) -> str:
    return "retrying cannot help" if code == EXIT_NEVER else "a later try may succeed"


def _exit(container: Mapping[str, Any], ended: Status) -> Problem:
    code, reason = int(ended["exitCode"]), ended.get("reason", "")
    name, message = container["name"], str(ended.get("message") or "").strip()
    if reason == OOM_KILLED:
        limit = ((container.get("resources") or {}).get("limits") or {}).get("memory", "none of its own")
        remedy = "Raise memory= of gpu_train; data that the container itself stages counts as well"
        return Problem(f"{name} ran out of memory", f"limit: {limit}", remedy)
    what, remedy = CODES.get(
        code, ("failed", "The end of its log is below" if name == MAIN else "Look at its log")
    )
    measured = f"exit code {code}" + (f": {message}" if message else "")
    return Problem(f"{name}: {what}", measured, remedy)


def _status(pod: Pod, container: str) -> Status:
    """The state of a container; empty if there is none yet."""
    status = pod.get("status") or {}
    every = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    found: Status = next((one.get("state") or {} for one in every if one["name"] == container), {})
    return found

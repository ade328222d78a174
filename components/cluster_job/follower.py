"""What a step says about its job, and when the job has ended: from what was seen of it. Pure.

Each observation leads to new lines for the log, and at the end to a verdict. A failed pod is no verdict: the
job's controller may replace it. Only the job's own status is one, or pods that will not start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from podferry.components.cluster_job.job_kind import JobKind, JobState, Phase
from podferry.components.cluster_job.pod_problems import (
    Failure,
    Wait,
    failures_of,
    has_started,
    not_injected,
    waits_of,
)
from podferry.contract.errors import Problem
from podferry.contract.workloads import map_at

Json = Mapping[str, Any]
MENTION_AFTER = 20.0
"""Seconds that a pod may wait before the log says why: schedulers and kubelets often mend it by then."""
MISTAKE_PATIENCE = 600.0
"""Seconds until a job is given up whose pod waits for an image or a setting that does not exist. Registries
have outages of minutes."""
MAX_FAILURES = 5
"""Failures in a verdict, the first ones: later pods often fail because of them."""


class Observation(msgspec.Struct, frozen=True):
    """What was seen of a job.

    Attributes:
        job: The object.
        pods: Its pods.
        warnings: Texts of the warning events about it and its pods.
        at: Seconds, of a clock that is never set back.
    """

    job: Json
    pods: Sequence[Json]
    warnings: Sequence[str]
    at: float


class Verdict(msgspec.Struct, frozen=True):
    """How a job has ended.

    Attributes:
        problems: Why it has failed; none if it has succeeded.
        given_up: Whether it has not ended by itself, so that it has to be deleted.
    """

    problems: tuple[Problem, ...] = ()
    given_up: bool = False


class Follower:
    """Follows one job. `start_timeout`: seconds until a pod has to run; 0 for no limit."""

    def __init__(self, kind: JobKind, name: str, start_timeout: float = 0) -> None:
        self._kind, self._name, self._start_timeout = kind, name, start_timeout
        self._failures: dict[tuple[str, str, str], Failure] = {}
        self._said: set[str] = set()
        self._progress = ""
        self._waiting: dict[str, float] = {}
        self._mistaken: dict[str, float] = {}
        self._idle_since: float | None = None
        self._started = False

    def new_failures(self, pods: Iterable[Json]) -> list[Failure]:
        """Failures that have not been seen yet; pass them on, explained, to `observe`."""
        found = (one for pod in pods for one in failures_of(pod))
        return [one for one in found if one.key not in self._failures]

    def observe(
        self, seen: Observation, failures: Iterable[Failure] = ()
    ) -> tuple[list[str], Verdict | None]:
        """New lines for the log, and the verdict if the job has ended."""
        state = self._kind.state(seen.job)
        fresh = {one.key: one for one in failures}
        self._failures |= fresh
        waits = [one for pod in seen.pods for one in waits_of(pod)]
        self._note_waits(seen, waits)
        lines = [*map(str, fresh.values()), *self._once(self._remarks(seen, waits))]
        if state.progress and state.progress != self._progress:
            self._progress = state.progress
            lines.append(f"{self._kind.kind} {self._name}: {state.progress}")
        return lines, self._verdict(seen, state, waits)

    def _once(self, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            if text not in self._said:
                self._said.add(text)
                yield text

    def _remarks(self, seen: Observation, waits: Sequence[Wait]) -> Iterator[str]:
        for pod in seen.pods:
            if not_injected(pod):
                name = map_at(pod, "metadata").get("name")
                yield f"pod {name} was created without podferry's webhook: its annotations have no effect"
        yield from seen.warnings
        for one in waits:
            # A message with changing numbers, such as a back-off's, is said once.
            key = f"{one.pod} {one.reason}"
            if seen.at - self._waiting[one.pod] >= MENTION_AFTER and key not in self._said:
                self._said.add(key)
                yield str(one)

    def _note_waits(self, seen: Observation, waits: Sequence[Wait]) -> None:
        """Since when each pod waits, and since when for what rarely comes.

        Reasons alternate, such as ErrImagePull and ImagePullBackOff, and may be absent while a kubelet tries
        again. So the time counts until the pod is gone or runs.
        """
        pending = {
            str(map_at(pod, "metadata").get("name"))
            for pod in seen.pods
            if map_at(pod, "status").get("phase") == "Pending"
        }
        mistaken = {one.pod: seen.at for one in waits if one.is_mistake}
        waiting = {one.pod: seen.at for one in waits}
        for known, now in ((self._mistaken, mistaken), (self._waiting, waiting)):
            kept = {pod: at for pod, at in known.items() if pod in pending or pod in now}
            known.clear()
            known.update(now | kept)

    def _verdict(self, seen: Observation, state: JobState, waits: Sequence[Wait]) -> Verdict | None:
        if state.phase is Phase.SUCCEEDED:
            return Verdict()
        if state.phase is Phase.FAILED:
            return Verdict((self._failed(state.reason), *self._causes()))
        if state.phase is Phase.SUSPENDED:
            self._idle_since = None
            return None
        return self._given_up(seen, waits)

    def _given_up(self, seen: Observation, waits: Sequence[Wait]) -> Verdict | None:
        """The verdict on pods that do not start."""
        self._started = self._started or has_started(seen.pods)
        stuck = [
            one for one in waits if one.is_mistake and seen.at - self._mistaken[one.pod] >= MISTAKE_PATIENCE
        ]
        if self._idle_since is None:
            self._idle_since = seen.at
        waited = seen.at - self._idle_since
        late = bool(self._start_timeout) and not self._started and waited >= self._start_timeout
        if not stuck and not late:
            return None
        what = f"the pods of {self._kind.kind} {self._name} do not start"
        reasons = [str(one) for one in stuck or waits] or list(seen.warnings) or ["no pod exists"]
        remedy = "Mend what they wait for; the job is deleted, and a retry creates it again"
        measured = f"{waited:.0f} s; {'; '.join(dict.fromkeys(reasons))}"
        return Verdict((Problem(what, measured, remedy), *self._causes()), given_up=True)

    def _failed(self, reason: str) -> Problem:
        remedy = "" if self._failures else "Look at its pods and events: kubectl describe"
        return Problem(f"{self._kind.kind} {self._name} has failed", reason, remedy)

    def _causes(self) -> Iterator[Problem]:
        found = sorted(self._failures.values(), key=lambda one: one.at)
        yield from (Problem(str(one)) for one in found[:MAX_FAILURES])
        if len(found) > MAX_FAILURES:
            yield Problem(f"and {len(found) - MAX_FAILURES} more, which the log lists")

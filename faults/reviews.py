"""`python -m faults.reviews --seed S --n N`: random reviews to the webhook over HTTP, from seed S on.

Each seed has one of several policies, with and without rules. Its pod is sent as an API server would send it,
the patched pod once more, then a spoiled pod, a truncated body, and a workload with the pod as its template,
also spoiled. Wrong are: a 5xx, a patch that an independent implementation of RFC 6902 cannot apply, a change
to what is not podferry's, a pod changed that has not opted in or stopped all the same, more than stamps under
audit, an accepted forgery of a stamp, and a second patch. Exits with 1 if anything was.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import aiohttp
import jsonpatch
import structlog
from aiohttp.test_utils import TestServer

from faults.random_pods import Pod, known_shapes, random_pod, random_workload, spoiled
from podferry.webhook.admission.server import Webhook
from podferry.webhook.cluster.namespaces import UnknownNamespaces
from podferry.webhook.injection.pod_conflicts import reason_to_leave_alone
from podferry.webhook.injection.resolve import opted_in
from podferry.webhook.pod.stamp import Signer
from podferry.webhook.policy.policy import Enforcement, InjectionRule, PodSelector, Policy
from tests.support.foreign_parts import changes_of_others

ANNOTATIONS = "/metadata/annotations"
IMAGE = "registry.example.com/podferry:1"
CONFIG_MAP = {"metadata": {"name": "podferry-policy"}, "data": {"policy.yaml": f"image: {IMAGE}"}}
ANYWHERE = PodSelector(namespaces=("*",))
RULE = InjectionRule("any", ANYWHERE, {"checkpoints": "s3://results/$(namespace)", "checkpoint-size": "1Mi"})
POLICIES = (
    Policy(image=IMAGE),
    Policy(image=IMAGE, rules=(RULE,)),
    Policy(image=IMAGE, rules=(RULE,), enforcement=Enforcement.AUDIT),
    Policy(image=IMAGE, rules=(RULE,), enforcement=Enforcement.DISABLED),
)
Flaws = list[str]


class Reviews:
    """Sends reviews to a webhook and collects what is wrong with its answers.

    Attributes:
        outcomes: How often each came.
    """

    def __init__(self, client: aiohttp.ClientSession, url: str) -> None:
        self._client, self._url = client, url
        self.outcomes: Counter[str] = Counter()

    async def flaws_of(self, seed: int, shapes: Sequence[Pod]) -> Flaws:
        """What is wrong with the answers to one seed."""
        pod, policy = random_pod(seed, shapes), policy_of(seed)
        status, answer = await self._ask(_review(pod))
        found = _flaws(pod, policy, status, answer)
        self.outcomes[_outcome(answer)] += 1
        if answer and answer.get("patch") and not found:
            found = await self._second_pass(_patched(pod, answer))
        body, workload = _review(spoiled(seed, pod)), random_workload(seed, pod)
        for path, junk in (
            ("mutate", body),
            ("mutate", body[: seed % len(body)]),
            ("validate", _review(workload, workload["kind"])),
            ("validate", _review(spoiled(seed, workload), workload["kind"])),
            ("validate-policy", _review(spoiled(seed, CONFIG_MAP), "ConfigMap")),
        ):
            status, _ = await self._ask(junk, path)
            found += [f"{status} for {path}"] if status >= 500 else []
        return found

    async def _second_pass(self, pod: Pod) -> Flaws:
        status, answer = await self._ask(_review(pod))
        if status != 200 or not answer or not answer["allowed"]:
            return [f"second pass: {status} {answer}"]
        return [f"second pass: patched again: {_patch(answer)}"] if answer.get("patch") else []

    async def _ask(self, body: bytes, path: str = "mutate") -> tuple[int, dict[str, Any] | None]:
        async with self._client.post(f"{self._url}/{path}", data=body) as response:
            text = await response.read()
        return response.status, json.loads(text)["response"] if response.status == 200 else None


def policy_of(seed: int) -> Policy:
    """The policy that a seed meets."""
    return POLICIES[seed % len(POLICIES)]


def _flaws(pod: Pod, policy: Policy, status: int, answer: dict[str, Any] | None) -> Flaws:
    if status != 200 or answer is None:
        return [f"{status} for a pod that an API server would send"]
    if not opted_in(pod) and not policy.rules and answer != {"uid": "u-1", "allowed": True}:
        return [f"not opted in, but: {answer}"]
    changing = policy.enforcement is Enforcement.INJECT
    if not answer["allowed"] and not (opted_in(pod) and changing):
        return [f"stopped: {answer}"]
    if not answer.get("patch"):
        accepted = changing and opted_in(pod) and answer["allowed"] and reason_to_leave_alone(pod) is None
        return ["a forged stamp is accepted"] if accepted else []
    try:
        _patched(pod, answer)
    except jsonpatch.JsonPatchException as error:
        return [f"the patch cannot be applied: {error}"]
    paths = [str(one["path"]) for one in _patch(answer)]
    more = [] if changing else [path for path in paths if not path.startswith(ANNOTATIONS)]
    return [f"changed: {path}" for path in (*more, *changes_of_others(pod, _patch(answer)))]


def _outcome(answer: dict[str, Any] | None) -> str:
    if answer is None:
        return "no review"
    if not answer["allowed"]:
        return "denied"
    if not answer.get("patch"):
        return "untouched"
    stamps = {one["value"] for one in _patch(answer) if one["path"].endswith("podferry.io~1status")}
    return str(next(iter(stamps), "repaired"))


def _review(document: Any, kind: str = "Pod") -> bytes:
    of_kind = {"version": "v1", "kind": kind}
    request = {"uid": "u-1", "kind": of_kind, "namespace": "team", "object": document}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    ).encode()


def _patch(answer: dict[str, Any]) -> list[dict[str, Any]]:
    decoded: list[dict[str, Any]] = json.loads(base64.b64decode(answer["patch"]))
    return decoded


def _patched(pod: Pod, answer: dict[str, Any]) -> Pod:
    made: Pod = jsonpatch.apply_patch(pod, _patch(answer))
    return made


async def review_all(first: int, count: int) -> tuple[Counter[str], list[tuple[int, str]]]:
    """How often each outcome came in `count` seeds from `first` on, and the flaws by seed."""
    shapes, broken = known_shapes(), []
    signer = Signer((b"a key",), int(time.time()))
    seed = first
    webhook = Webhook(lambda: policy_of(seed), UnknownNamespaces(), lambda: signer)
    async with TestServer(webhook.application()) as server, aiohttp.ClientSession() as client:
        reviews = Reviews(client, str(server.make_url("")).rstrip("/"))
        for seed in range(first, first + count):
            broken += [(seed, flaw) for flaw in await reviews.flaws_of(seed, shapes)]
    return reviews.outcomes, broken


def main() -> int:
    """The exit code: 0 if nothing was wrong."""
    parser = argparse.ArgumentParser(prog="python -m faults.reviews", description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first (%(default)s)")
    parser.add_argument("--n", type=int, default=1000, help="seeds (%(default)s)")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    outcomes, broken = asyncio.run(review_all(given.seed, given.n))
    lines = [f"  {count:6}  {outcome}" for outcome, count in outcomes.most_common()]
    wrong = [f"  seed {seed}: {flaw}"[:400] for seed, flaw in broken]
    header = f"{given.n} random pods, each also patched, spoiled and truncated; wrong: {len(broken)}"
    sys.stdout.write("\n".join([header, *lines, *wrong[:50], ""]))
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

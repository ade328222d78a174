"""The complete decision on a pod: the policy's rules and its enforcement, around `inject`. Pure.

enforcement   the pod opts in itself                          only a rule selects it
inject        as `inject` decides, with what the rule adds    injected, or skipped with the reason
audit         audited                                         audited
disabled      disabled                                        untouched

Audited, skipped and disabled pods only get stamps. A rule never stops a pod whose author has not asked for
podferry.
"""

from __future__ import annotations

from typing import Any

import msgspec

from podferry.contract.spec import PREFIX
from podferry.webhook.injection.inject import UNTOUCHED, Decision, InjectionOutcome, inject
from podferry.webhook.injection.pod_conflicts import reason_to_leave_alone
from podferry.webhook.injection.resolve import opted_in
from podferry.webhook.pod.json_patch import Draft
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.pod.pod_json import Json, annotations_of, podferry_names
from podferry.webhook.pod.stamp import INJECTED, REFUSED, SHARED, STATUS_STAMP, UNSIGNED, Signer
from podferry.webhook.policy.policy import Enforcement, Policy
from podferry.webhook.policy.rules import AppliedRule, applied_rule, requests_something

RULE_STAMP, REASON_STAMP = f"{PREFIX}rule", f"{PREFIX}reason"
OUR_STAMPS = (STATUS_STAMP, RULE_STAMP, REASON_STAMP)
MAX_REASON_LENGTH = 1000
"""Characters: enough for several problems, little in a pod that may have 256 KiB of annotations."""
NOT_DONE = frozenset({InjectionOutcome.REFUSED, InjectionOutcome.DENIED})
DISABLED = "podferry is disabled by the policy: the pod starts without its data, and nothing is uploaded"


def concerns(pod: Json, policy: Policy) -> bool:
    """Whether there may be something to decide, so that the namespace matters."""
    return opted_in(pod) or bool(policy.rules)


def decide(
    pod: Json, namespace: Namespace, policy: Policy, signer: Signer = UNSIGNED, request: str = ""
) -> Decision:
    """Decide on a pod that is about to be created; its plain JSON is not modified.

    `request` is the unique id of its admission.
    """
    if reason := reason_to_leave_alone(pod):
        warnings = (f"podferry leaves this pod alone: {reason}",) if opted_in(pod) else ()
        return Decision(InjectionOutcome.UNTOUCHED, warnings=warnings)
    return _decide(pod, namespace, policy, signer, request)


def _decide(pod: Json, namespace: Namespace, policy: Policy, signer: Signer, request: str) -> Decision:
    asked = opted_in(pod)
    if annotations_of(pod).get(STATUS_STAMP) in {INJECTED, REFUSED, SHARED} or any(podferry_names(pod)):
        decision = inject(pod, namespace, policy, signer) if asked else UNTOUCHED
        # A copy or a forgery is stopped, but not while pods are only audited.
        if not decision.problems or policy.enforcement is Enforcement.INJECT:
            return decision
    applied = _applied(pod, namespace, policy, asked=asked)
    if not asked and (applied is None or policy.enforcement is Enforcement.DISABLED):
        return UNTOUCHED
    if policy.enforcement is Enforcement.DISABLED:
        return _disabled(pod)
    draft = _with_rule(pod, applied)
    decision = inject(_as_undecided(draft.document), namespace, policy, signer, request)
    decision = msgspec.structs.replace(decision, rule=applied.rule.name if applied else None)
    if _is_audited(applied, policy, asked=asked):
        return _audited(pod, decision)
    if not asked and decision.outcome in NOT_DONE:
        return _skipped(pod, decision)
    return msgspec.structs.replace(decision, patch=(*draft.operations, *decision.patch))


def _disabled(pod: Json) -> Decision:
    return _only_stamped(pod, Decision(InjectionOutcome.DISABLED, warnings=(DISABLED,)), DISABLED)


def _applied(pod: Json, namespace: Namespace, policy: Policy, *, asked: bool) -> AppliedRule | None:
    """The rule that applies to the pod, if any; `asked` is whether the pod has opted in itself."""
    applied = applied_rule(pod, namespace, policy)
    if applied is None or (not asked and not requests_something(applied.rule.annotations)):
        return None
    # Under audit, a rule must not change what the pod itself asks for.
    audited = applied.rule.enforcement is Enforcement.AUDIT and policy.enforcement is Enforcement.INJECT
    return None if asked and audited else applied


def _with_rule(pod: Json, applied: AppliedRule | None) -> Draft:
    """The pod with the rule's annotations and its name, and without the reason of an earlier decision."""
    draft, found = Draft(pod), annotations_of(pod)
    stamps = {RULE_STAMP: applied.rule.name if applied else "", REASON_STAMP: ""}
    kept = {name: text for name, text in stamps.items() if text or name in found}
    for name, text in {**(applied.added if applied else {}), **kept}.items():
        draft.set(("metadata", "annotations", name), text)
    return draft


def _is_audited(applied: AppliedRule | None, policy: Policy, *, asked: bool) -> bool:
    by_rule = applied is not None and applied.rule.enforcement is Enforcement.AUDIT and not asked
    return policy.enforcement is Enforcement.AUDIT or by_rule


def _audited(pod: Json, decision: Decision) -> Decision:
    reasons = "; ".join(map(str, decision.problems))
    reason = f"would be {decision.outcome}" + (f": {reasons}" if reasons else "")
    warnings = (f"podferry only audits this pod: it {reason}", *decision.warnings)
    audited = msgspec.structs.replace(decision, outcome=InjectionOutcome.AUDITED, warnings=warnings)
    return _only_stamped(pod, audited, reason)


def _skipped(pod: Json, decision: Decision) -> Decision:
    reason = "; ".join(map(str, decision.problems))
    warnings = (f"podferry leaves this pod alone, which rule {decision.rule} selects: {reason}",)
    skipped = msgspec.structs.replace(decision, outcome=InjectionOutcome.SKIPPED, warnings=warnings)
    return _only_stamped(pod, skipped, reason)


def _only_stamped(pod: Json, decision: Decision, reason: str) -> Decision:
    draft = Draft(pod)
    texts = (str(decision.outcome), decision.rule, reason[:MAX_REASON_LENGTH])
    for name, text in zip(OUR_STAMPS, texts, strict=True):
        if text is not None:
            draft.set(("metadata", "annotations", name), text)
    return msgspec.structs.replace(decision, patch=tuple(draft.operations))


def _as_undecided(pod: dict[str, Any]) -> dict[str, Any]:
    """The pod without a status that neither injected nor refused it: it may be a copy of a pod left alone."""
    found = annotations_of(pod)
    if STATUS_STAMP not in found:
        return pod
    kept = {name: text for name, text in found.items() if name != STATUS_STAMP}
    return {**pod, "metadata": {**pod["metadata"], "annotations": kept}}

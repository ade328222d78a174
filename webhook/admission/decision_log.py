"""The log of decisions, without secrets: URIs in annotations may have passwords, tokens or signatures."""

from __future__ import annotations

import re

import structlog

from podferry.contract.hidden_secrets import HIDDEN, shown_value
from podferry.webhook.admission.review import AdmissionRequest
from podferry.webhook.injection.inject import Decision

log = structlog.get_logger(__name__)

MAX_PROBLEM_LENGTH = 500
"""Characters of a problem in the log; an annotation that it quotes may have a megabyte."""
MAX_PROBLEMS = 20
SECRETS = (
    # User and password before a host.
    (re.compile(r"://[^/@\s'\"]+@"), f"://{HIDDEN}@"),
    # Parameters of a URI: signatures of Azure's SAS, presigned URIs, tokens.
    (re.compile(r"([?&][\w.-]+)=[^&\s'\")]+"), rf"\1={HIDDEN}"),
    # Access keys of AWS. Source: IAM, "Unique identifiers".
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b"), HIDDEN),
)


# Anchored at the start of a name, so that a hostile text takes no longer than its length.
ASSIGNMENT = re.compile(r"(?<![\w-])([\w-]+)=([^&\s'\")]+)")


def without_secrets(text: str) -> str:
    """A text on one line, without passwords, tokens and signatures, and cut if it is long."""
    line = " ".join(text[: 4 * MAX_PROBLEM_LENGTH].split())
    for pattern, replacement in SECRETS:
        line = pattern.sub(replacement, line)
    line = ASSIGNMENT.sub(_hidden, line)
    return line if len(line) <= MAX_PROBLEM_LENGTH else line[: MAX_PROBLEM_LENGTH - 1] + "…"


def _hidden(match: re.Match[str]) -> str:
    return f"{match[1]}={shown_value(match[1], match[2])}"


def log_decision(review: AdmissionRequest, decision: Decision) -> None:
    """Log what was decided on an object."""
    found = (review.object or {}).get("metadata")
    metadata = found if isinstance(found, dict) else {}
    log.info(
        "decided",
        outcome=decision.outcome,
        rule=decision.rule,
        namespace=review.namespace,
        name=review.name or metadata.get("name") or metadata.get("generateName"),
        kind=review.kind.kind,
        dry_run=bool(review.dry_run),
        problems=[without_secrets(str(problem)) for problem in decision.problems[:MAX_PROBLEMS]],
        uid=review.uid,
    )

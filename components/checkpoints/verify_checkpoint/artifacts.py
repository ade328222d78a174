"""What KFP's UI shows of verified checkpoints: a page, numbers, and the newest one as a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from podferry.components.checkpoints.verify_checkpoint.runner import VerifiedLineage
from podferry.components.reports.document import Document, Table
from podferry.components.reports.render import html, write
from podferry.contract.quantity import count_of, format_bytes

TRANSPORTED = frozenset({"gs", "s3", "minio", "oci"})
"""Schemes of artifacts that KFP's launcher uploads itself, and only to the bucket of the pipeline's root.

Source: kubeflow/pipelines, `backend/src/v2/component/launcher_v2.go`, `uploadOutputArtifacts`.
"""
COLUMNS = ("lineage", "checkpoint", "step", "commit", "files", "size", "committed", "confidence", "location")


def write_artifacts(verified: Sequence[VerifiedLineage], report: str, metrics: Any, model: Any) -> None:
    """Write the page to `report`, and fill in KFP's artifacts."""
    write(report, html(page(verified)))
    for name, value in numbers(verified).items():
        metrics.log_metric(name, value)
    one = newest(verified)
    metadata = model_metadata(one)
    write(model.path, msgspec.json.encode(metadata).decode() + "\n")
    model.metadata.update(metadata)
    model.uri = model_uri(model.uri, one.uri)


def page(verified: Sequence[VerifiedLineage]) -> Document:
    """The page: all of them are committed and intact."""
    rows = tuple(map(_row, verified))
    doubtful = sum(not one.commit.is_sure for one in verified)
    said = f"{count_of(len(verified), 'lineage')}, the newest checkpoint of each committed and intact"
    verdict = f"{said}; doubtful, which is allowed: {doubtful}" if doubtful else f"{said}, and sure"
    return Document("Verified checkpoints", verdict, not doubtful, (Table("Lineages", COLUMNS, rows),))


def newest(verified: Sequence[VerifiedLineage]) -> VerifiedLineage:
    """The one with the highest step; of equal ones, the one that was committed last."""
    return max(verified, key=lambda one: (_step(one), one.commit.created))


def numbers(verified: Sequence[VerifiedLineage]) -> dict[str, float]:
    """What `Metrics` shows of all lineages."""
    commits = [one.commit for one in verified]
    steps = [commit.step for commit in commits if commit.step is not None]
    return {
        "lineages": len(commits),
        "doubtful": sum(not commit.is_sure for commit in commits),
        "bytes": sum(commit.bytes for commit in commits),
        **({"newest_step": max(steps)} if steps else {}),
    }


def model_metadata(one: VerifiedLineage) -> dict[str, Any]:
    """The model's metadata: `checkpoint` is its location, whatever the artifact's URI is."""
    commit = one.commit
    return {
        "checkpoint": one.uri,
        "lineage": one.name,
        "name": commit.name,
        "step": _step(one),
        "commit": commit.sequence,
        "confidence": _confidence(one),
        "files": len(commit.files),
        "bytes": commit.bytes,
        "created": commit.created.isoformat(),
    }


def model_uri(own: str, checkpoint: str) -> str:
    """The URI of the model: the checkpoint's, unless KFP would fail to upload an artifact there."""
    if checkpoint.partition("://")[0] not in TRANSPORTED or _bucket(own) == _bucket(checkpoint):
        return checkpoint
    return own


def _row(one: VerifiedLineage) -> tuple[str, ...]:
    commit = one.commit
    step = "" if commit.step is None else str(commit.step)
    size, created = format_bytes(commit.bytes), f"{commit.created:%Y-%m-%d %H:%M:%S %Z}"
    files, sequence = f"{len(commit.files):,}", str(commit.sequence)
    return (one.name, commit.name, step, sequence, files, size, created, _confidence(one), one.uri)


def _step(one: VerifiedLineage) -> int:
    return -1 if one.commit.step is None else one.commit.step


def _confidence(one: VerifiedLineage) -> str:
    return "sure" if one.commit.is_sure else "doubtful"


def _bucket(uri: str) -> str:
    return "/".join(uri.split("/")[:3])

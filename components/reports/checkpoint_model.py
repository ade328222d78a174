"""The newest verified checkpoint as a model of KFP, and the numbers of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from podferry.contract.destination.commit import Commit

TRANSPORTED = frozenset({"gs", "s3", "minio", "oci"})
"""Schemes of artifacts that KFP's launcher uploads itself, and only to the bucket of the pipeline's root.

Source: kubeflow/pipelines, `backend/src/v2/component/launcher_v2.go`, `uploadOutputArtifacts`.
"""


class Verified(NamedTuple):
    """A verified lineage: its name, the location of its newest checkpoint, and the commit."""

    lineage: str
    uri: str
    commit: Commit


def newest(verified: Sequence[Verified]) -> Verified:
    """The one with the highest step; of equal ones, the one that was committed last."""
    return max(
        verified, key=lambda one: (-1 if one.commit.step is None else one.commit.step, one.commit.created)
    )


def model_uri(own: str, checkpoint: str) -> str:
    """The URI of the model: the checkpoint's, unless KFP would fail to upload an artifact there."""
    if checkpoint.partition("://")[0] not in TRANSPORTED or _bucket(own) == _bucket(checkpoint):
        return checkpoint
    return own


def model_metadata(one: Verified) -> dict[str, Any]:
    """The model's metadata: `checkpoint` is its location, whatever the artifact's URI is."""
    commit = one.commit
    return {
        "checkpoint": one.uri,
        "lineage": one.lineage,
        "name": commit.name,
        "step": -1 if commit.step is None else commit.step,
        "commit": commit.sequence,
        "confidence": "sure" if commit.is_sure else "doubtful",
        "files": len(commit.files),
        "bytes": commit.bytes,
        "created": commit.created.isoformat(),
    }


def numbers(verified: Sequence[Verified]) -> dict[str, float]:
    """What `Metrics` shows of all lineages."""
    commits = [one.commit for one in verified]
    steps = [commit.step for commit in commits if commit.step is not None]
    return {
        "lineages": len(commits),
        "doubtful": sum(not commit.is_sure for commit in commits),
        "bytes": sum(commit.bytes for commit in commits),
        **({"newest_step": max(steps)} if steps else {}),
    }


def _bucket(uri: str) -> str:
    return "/".join(uri.split("/")[:3])

"""Which commits and objects of the own lineage this agent does not build on."""

from __future__ import annotations

from podferry.sidecar.checkpoint.pipeline.dependencies import Dependencies
from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry


def exclude(dependencies: Dependencies, registry: VersionRegistry, found: Restored) -> None:
    """Exclude what the restore found damaged, and what its run leaves behind; `registry.restore` saves it.

    A restarted worker reads both from the journal. Call it before training starts, or in a restarted worker.
    """
    registry.exclude(found.damaged, found.abandoned)
    first, last = found.abandoned or (0, -1)
    content, began_ns = dependencies.committer.content, dependencies.journal.checkpoints.began_ns
    content.damaged, content.abandoned = frozenset(found.damaged), range(first, last + 1)
    content.began_ns = began_ns or dependencies.holds.now_ns()

"""The step `restore_point` as a KFP component."""

# KFP copies only the function's source into its step and reads its annotations as values. So there is no
# `from __future__ import annotations` here, imports are inside, outputs are an inline NamedTuple, and lists
# are typing's, with defaults that become part of the component's interface.
# mypy: disable-error-code=valid-type, disallow-untyped-decorators=False
# ruff: noqa: B006, PLC0415, PLR0913, UP006, UP035, UP045
from typing import Dict, List, NamedTuple, Optional

from kfp import dsl

from podferry.components.step import step


@step
def restore_point(
    checkpoints: str = "",
    lineage: str = "",
    of: List[Dict[str, object]] = [],
    artifact0: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact1: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact2: Optional[dsl.Input[dsl.Artifact]] = None,
    artifact3: Optional[dsl.Input[dsl.Artifact]] = None,
    endpoint: str = "",
    region: str = "",
    run: str = "",
) -> NamedTuple("Outputs", [("uri", str), ("lineage", str), ("name", str)]):
    """Find the newest checkpoint of a lineage that is sure and complete; fail if there is none.

    Args:
        checkpoints: The destination; empty for that of the training in `of`.
        lineage: The lineage; empty for that of the training in `of`.
        of: The training task, as `podferry.components.restore_point` describes it.
        artifact0: With the others, the training's input artifacts, which are part of its lineage.
        artifact1: See there.
        artifact2: See there.
        artifact3: See there.
        endpoint: URL of the object store, unless it is the vendor's.
        region: Region of the object store.
        run: Identifier of this run: the step is never answered from KFP's cache.

    Returns:
        uri: The checkpoint's folder at the destination.
        lineage: Its lineage.
        name: Its name, as the training wrote it.
    """
    import os
    import sys

    from podferry.components.checkpoints.restore_point.runner import find_or_exit
    from podferry.components.trained_task.locate import TrainedPlace, places_of
    from podferry.components.verdict import verdict

    place = TrainedPlace(checkpoints, (lineage,))
    if of:
        (place,) = verdict(places_of, of, checkpoints, sys.argv, os.environ)
    found = find_or_exit(place, endpoint, region)
    return (found.uri, found.lineage, found.name)


@dsl.pipeline(name="import-checkpoint")
def import_checkpoint(uri: str) -> dsl.Model:
    """Import a checkpoint's folder as a `Model`.

    A pipeline of its own: KFP's backend imports a URI that is a constant or an input of the importer's own
    pipeline, and fails for an output of a step. It would also store metadata with unresolved placeholders.
    Source: kubeflow/pipelines, `importer_launcher.go` in `backend/src/v2/component`, 2.17.

    Args:
        uri: The checkpoint's folder.

    Returns:
        The model, without metadata: lineage and name are in its URI.
    """
    return dsl.importer(artifact_uri=uri, artifact_class=dsl.Model, reimport=False).output

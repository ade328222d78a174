"""Changes an object of a cache that exists into what it is asked to be, by a merge patch (RFC 7396). Pure.

A merge patch replaces lists as a whole, and leaves keys alone that it does not name. So it names each
optional key of our own manifests, and keeps what others have added.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podferry.contract.cache_api import CLEARED_NODES

Json = dict[str, Any]
OF_PODS = {"nodeSelector": None, "tolerations": None}
OF_AFFINITY = {"nodeAffinity": None}
OF_WORKLOAD = {CLEARED_NODES: None}
"""What manifests may leave out; and the note of `clear --empty`, which does not count when holders start."""


def merge_patch(document: Mapping[str, Any]) -> Json:
    """The patch for an object that exists.

    Args:
        document: As `manifests` renders it.
    """
    if document["kind"] != "StatefulSet":
        return dict(document)
    metadata, spec = document["metadata"], document["spec"]
    pod = spec["template"]["spec"]
    annotations = {**OF_WORKLOAD, **metadata.get("annotations", {})}
    whole = {**OF_PODS, **pod, "affinity": {**OF_AFFINITY, **pod["affinity"]}}
    template = {**spec["template"], "spec": whole}
    return {
        **document,
        "metadata": {**metadata, "annotations": annotations},
        "spec": {**spec, "template": template},
    }

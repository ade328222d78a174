"""Binds an injected spec to its pod, so that a copy of the pod never writes to the original's lineage.

`kubectl debug --copy-to` keeps the containers. It drops the annotations, except with `--set-image` or
`--profile=legacy`. The copy's agent would restore the original's checkpoint, and fence the original with its
first commit.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec

MADE_FOR_VARIABLE = "PODFERRY_MADE_FOR"
"""The name of the pod for which the webhook made the container, or its beginning and `*`."""
POD_VARIABLE, STAMP_VARIABLE = "PODFERRY_POD", "PODFERRY_STAMP"
"""The name and the stamp of the pod in which the container runs, by the downward API."""
MAX_GENERATED_BASE = 58
"""Characters that the API server keeps of `generateName`. Source: Kubernetes,
`k8s.io/apiserver/pkg/storage/names`, `MaxGeneratedNameLength`."""
REMEDY = (
    "To debug the original, use an ephemeral container: kubectl debug POD -it --image=IMAGE "
    "--target=CONTAINER; or copy only its main containers: kubectl debug POD -it --copy-to=NAME "
    "--profile=general --keep-init-containers=false --container=CONTAINER -- sh"
)


class PodBinding(msgspec.Struct, frozen=True):
    """The pod for which an agent was injected, and the pod in which it runs.

    Attributes:
        made_for: See `MADE_FOR_VARIABLE`.
        pod: The name of the agent's pod.
        stamp: The signature in its annotations; empty if it has none.
    """

    made_for: str
    pod: str
    stamp: str

    def check(self) -> None:
        """Raises `InvalidSpec` in a copy of the pod."""
        if not self.stamp:
            what = "this pod is a copy of one that podferry injected, without its podferry annotations"
            raise InvalidSpec.of(what, f"pod {self.pod}, made for {self.made_for}", REMEDY)
        prefix = self.made_for.removesuffix("*")
        if self.pod != prefix and not (prefix != self.made_for and self.pod.startswith(prefix)):
            what = "this pod is a copy: podferry's containers in it were made for another pod"
            raise InvalidSpec.of(what, f"pod {self.pod}, made for {self.made_for}", REMEDY)


def made_for(pod: Mapping[str, Any]) -> str:
    """The value of `MADE_FOR_VARIABLE` for a pod that may not have its name yet."""
    metadata = pod.get("metadata") or {}
    generated: str = (metadata.get("generateName") or "")[:MAX_GENERATED_BASE]
    name: str = metadata.get("name") or ""
    return name or f"{generated}*"

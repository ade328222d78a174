"""What all steps share: the image they run in, and their Secret.

A step's image holds `podferry[kfp]`; nothing is installed when it starts. So a step also runs where no
package index can be reached, and nothing is ever installed into a laptop's environment by KFP's
SubprocessRunner.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kfp import dsl, kubernetes

DEFAULT_IMAGE = "podferry:0.1.0-python3.12"
"""The tag says Python: KFP's SubprocessRunner warns of an image whose name does not."""
IMAGE_VARIABLE = "PODFERRY_IMAGE"


def image(environ: Mapping[str, str]) -> str:
    """The image of the steps: what `PODFERRY_IMAGE` says when a pipeline is compiled, else the default."""
    return environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE


def step(function: Callable[..., Any]) -> Any:
    """Make a component of a function that only calls its runner."""
    return dsl.component(function, base_image=image(os.environ), install_kfp_package=False)


def verdict(task: Any, secret: Any, directory: Path) -> Any:
    """A task that is never answered from KFP's cache, with a Secret mounted where one is named.

    KFP's cache compares inputs alone. A step that looks at a store would be answered with what an earlier
    run found there; a component cannot turn that off for itself, only for a task.

    Args:
        task: The step.
        secret: Name of a Secret in the run's namespace, also as a channel; None for the pod's identity.
        directory: Where the runner looks for it.
    """
    task.set_caching_options(False)
    if secret is not None:
        # Optional, so that a missing one is told by the step rather than keeping its pod from starting.
        kubernetes.use_secret_as_volume(task, secret, str(directory), optional=True)
    return task

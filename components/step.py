"""Shared by all steps: their image and their Secret.

The image contains `podferry[kfp]`; nothing is installed when a step starts. So a step runs without a package
index, and KFP's SubprocessRunner installs nothing into a laptop's environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kfp import dsl, kubernetes

DEFAULT_IMAGE = "podferry:0.1.0-python3.12"
"""The tag contains `python`: KFP's SubprocessRunner warns about an image whose name does not."""
IMAGE_VARIABLE = "PODFERRY_IMAGE"


def step_image(environ: Mapping[str, str]) -> str:
    """The image of the steps: `PODFERRY_IMAGE` when the pipeline is compiled, or the default."""
    return environ.get(IMAGE_VARIABLE) or DEFAULT_IMAGE


def step(function: Callable[..., Any]) -> Any:
    """Turn a function that only calls its runner into a component."""
    return dsl.component(function, base_image=step_image(os.environ), install_kfp_package=False)


def uncached(task: Any, secret: Any, directory: Path) -> Any:
    """Exclude a task from KFP's cache, and mount its Secret (name or channel; None for the pod's identity).

    KFP's cache compares only inputs, so a step that reads a store would get the result of an earlier run. A
    component cannot turn the cache off for itself; only a task can.
    """
    task.set_caching_options(False)
    if secret is not None:
        # Optional: the step reports a missing Secret, instead of a pod that does not start.
        kubernetes.use_secret_as_volume(task, secret, str(directory), optional=True)
    return task

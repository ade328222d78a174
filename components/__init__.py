"""KFP components and the helpers that compose them.

Names are imported on first use: the runner of a step needs none of the others, and training code that imports
`ferry` from here does not load kfp.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from podferry.contract.extras import missing_extra

if TYPE_CHECKING:
    from podferry.components.cache.component import plan_cache
    from podferry.components.dataset.component import freeze_dataset
    from podferry.components.training.helper import gpu_train
    from podferry.components.verify_checkpoint.component import verify
    from podferry.trainer import Ferry, ferry

__all__ = ["Ferry", "ferry", "freeze_dataset", "gpu_train", "plan_cache", "verify"]

MODULES = {
    "Ferry": "podferry.trainer",
    "ferry": "podferry.trainer",
    "freeze_dataset": "podferry.components.dataset.component",
    "gpu_train": "podferry.components.training.helper",
    "plan_cache": "podferry.components.cache.component",
    "verify": "podferry.components.verify_checkpoint.component",
}
"""The module that defines each public name."""


def __getattr__(name: str) -> Any:
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(MODULES[name]), name)
    except ModuleNotFoundError as error:
        if (problem := missing_extra(error)) is None:
            raise
        raise ModuleNotFoundError(f"podferry.components.{name}: {problem}", name=error.name) from error

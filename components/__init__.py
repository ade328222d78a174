"""KFP components and the helpers that compose them.

Names are imported on first use: the runner of a step needs none of the others, and training code that imports
`ferry` from here does not load kfp. No module here has the name of a function, which it would replace.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from podferry.components.checkpoints.restore_point.task import restore_point
    from podferry.components.checkpoints.verify_checkpoint.task import verify_checkpoint
    from podferry.components.data.cache.task import cache
    from podferry.components.data.dataset.task import dataset
    from podferry.components.data.node_cache.task import (
        clear_cache,
        create_cache,
        delete_cache,
        remove_from_cache,
        warmup_cache,
    )
    from podferry.components.data.prepare.prepared import Prepared, prepared
    from podferry.components.data.prepare.task import prepare
    from podferry.components.data.sync.task import sync
    from podferry.components.diagnosis.why.task import why
    from podferry.components.step import mount_secret
    from podferry.components.training.gpu_train.task import gpu_train
    from podferry.components.training.paddle_job.task import paddle_job
    from podferry.components.training.train.component import train_component
    from podferry.components.training.train.task import train
    from podferry.components.training.train_job.task import train_job
    from podferry.trainer import Ferry, ferry

__all__ = [
    "Ferry",
    "Prepared",
    "cache",
    "clear_cache",
    "create_cache",
    "dataset",
    "delete_cache",
    "ferry",
    "gpu_train",
    "mount_secret",
    "paddle_job",
    "prepare",
    "prepared",
    "remove_from_cache",
    "restore_point",
    "sync",
    "train",
    "train_component",
    "train_job",
    "verify_checkpoint",
    "warmup_cache",
    "why",
]

MODULES = {
    "Ferry": "podferry.trainer",
    "Prepared": "podferry.components.data.prepare.prepared",
    "cache": "podferry.components.data.cache.task",
    "clear_cache": "podferry.components.data.node_cache.task",
    "create_cache": "podferry.components.data.node_cache.task",
    "dataset": "podferry.components.data.dataset.task",
    "delete_cache": "podferry.components.data.node_cache.task",
    "ferry": "podferry.trainer",
    "gpu_train": "podferry.components.training.gpu_train.task",
    "mount_secret": "podferry.components.step",
    "paddle_job": "podferry.components.training.paddle_job.task",
    "prepare": "podferry.components.data.prepare.task",
    "prepared": "podferry.components.data.prepare.prepared",
    "remove_from_cache": "podferry.components.data.node_cache.task",
    "restore_point": "podferry.components.checkpoints.restore_point.task",
    "sync": "podferry.components.data.sync.task",
    "train": "podferry.components.training.train.task",
    "train_component": "podferry.components.training.train.component",
    "train_job": "podferry.components.training.train_job.task",
    "verify_checkpoint": "podferry.components.checkpoints.verify_checkpoint.task",
    "warmup_cache": "podferry.components.data.node_cache.task",
    "why": "podferry.components.diagnosis.why.task",
}
"""The module that defines each public name."""

RENAMED = {"freeze_dataset": "dataset", "plan_cache": "cache", "verify": "verify_checkpoint"}
"""Names of 0.1, and today's."""


def __getattr__(name: str) -> Any:
    if name in RENAMED:
        # `from … import` hides the text of an AttributeError, and shows that of an ImportError.
        raise ImportError(f"podferry.components.{name} is now podferry.components.{RENAMED[name]}", name=name)
    if name not in MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        return getattr(importlib.import_module(MODULES[name]), name)
    except ModuleNotFoundError as error:
        from podferry.contract.extras import missing_extra  # noqa: PLC0415 - importing the package costs nothing

        if (problem := missing_extra(error)) is None:
            raise
        raise ModuleNotFoundError(f"podferry.components.{name}: {problem}", name=error.name) from error

"""Gives a task an input that its component does not declare, so that an annotation can refer to it.

KFP resolves no outputs in annotations, and the webhook reads their values from the inputs in the pod's
command. An unchanged component of somebody else has no input for the location of the checkpoints. KFP's
compiler writes all inputs of a task; the driver passes on those that the component does not declare, and the
component never reads them.

Source: kfp 2.14 to 2.17, `build_task_spec_for_task` in `kfp/compiler/pipeline_spec_builder.py`; KFP's driver,
`backend/src/v2/driver/resolve.go`, which resolves inputs without a definition like any other. Tried on KFP's
own backend. `tests/components/training/test_undeclared_inputs.py` fails if a version of kfp does otherwise.
"""

from __future__ import annotations

from typing import Any

from kfp.dsl.pipeline_channel import extract_pipeline_channels_from_any

from podferry.contract.kfp_inputs import UNDECLARED_PREFIX


def undeclared_name(setting: str) -> str:
    """The name of the undeclared input that carries a setting.

    `podferry_dataset_secret` for `dataset_secret`, `podferry_dataset__test` for the dataset `test`.
    """
    return UNDECLARED_PREFIX + setting.replace("-", "_").replace(".", "__")


def add_undeclared_input(task: Any, name: str, value: Any) -> None:
    """Give a task an input, or replace it.

    Args:
        task: A step inside a pipeline.
        name: Of the input; see `undeclared_name`.
        value: A constant, a channel of a parameter, or a text with such channels.
    """
    task.inputs[name] = value
    register_channels(task, value)


def register_channels(task: Any, value: Any) -> None:
    """Make the tasks whose outputs are in `value` run before a task.

    The compiler derives a task's dependencies, and what it passes into loops and inner pipelines, from the
    channels that the task has registered. KFP's `set_memory_limit` and `set_accelerator_limit` register none.
    """
    registered = {channel.pattern for channel in task.channel_inputs}
    channels = extract_pipeline_channels_from_any(value)
    task.channel_inputs.extend(channel for channel in channels if channel.pattern not in registered)

"""A stand-in for Argo and KFP's DAG driver: executes a compiled pipeline's tasks in their order.

ParallelFor's iterations run one after another. Conditions and `dsl.OneOf` are not supported.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Any

from tests.support.kfp_driver import CompiledPipeline, Json


@dataclass(frozen=True)
class Execution:
    """A task to execute.

    Attributes:
        task: Its name.
        dag: The component that contains it; empty for the pipeline itself.
        above: What is above the task in Argo's path.
        inputs: As the driver resolves them.
    """

    task: str
    dag: str
    above: str
    inputs: Json


Execute = Callable[[Execution], Mapping[str, Any]]
"""Executes a task; its output parameters, by name."""


def run_pipeline(compiled: CompiledPipeline, execute: Execute) -> dict[str, Any]:
    """Execute all tasks; the pipeline's outputs."""
    return _Runner(compiled, execute).dag("", compiled.arguments, "")


class _Runner:
    def __init__(self, compiled: CompiledPipeline, execute: Execute) -> None:
        self._compiled, self._execute = compiled, execute

    def dag(self, name: str, arguments: Mapping[str, Any], above: str) -> dict[str, Any]:
        body = self._compiled.body(name)
        outputs: dict[str, Any] = {}
        for task in _in_order(body["tasks"]):
            inputs = self._compiled.inputs(task, outputs, name, arguments)
            found = self._task(Execution(task, name, above, inputs), body["tasks"][task])
            outputs |= {f"{task}.{key}": value for key, value in found.items()}
        declared = body.get("outputs", {}).get("parameters", {})
        return {key: outputs[_source(one)] for key, one in declared.items()}

    def _task(self, one: Execution, task: Json) -> Mapping[str, Any]:
        component = task["componentRef"]["name"]
        if "dag" not in self._compiled.spec["components"][component]:
            return self._execute(one)
        given, path = one.inputs["parameterValues"], f"{one.above}{one.task}(0)."
        if "parameterIterator" not in task:
            return self.dag(component, given, path)
        found = [
            self.dag(
                component,
                given | {name: item},
                f"{path}iteration-iterations({at}:{at})(0).iteration-item(0).",
            )
            for at, (name, item) in enumerate(_items(task["parameterIterator"], given))
        ]
        return {key: [each[key] for each in found] for key in (found[0] if found else ())}


def _in_order(tasks: Mapping[str, Json]) -> list[str]:
    return list(
        TopologicalSorter({name: one.get("dependentTasks", ()) for name, one in tasks.items()}).static_order()
    )


def _items(iterator: Json, given: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The loop's input and each of its items."""
    items = iterator["items"]
    found = given[items["inputParameter"]] if "inputParameter" in items else json.loads(items["raw"])
    return ((iterator["itemInput"], item) for item in found)


def _source(output: Json) -> str:
    value = output["valueFromParameter"]
    return f"{value['producerSubtask']}.{value['outputParameterKey']}"

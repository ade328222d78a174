"""A stand-in for KFP's driver and launcher: a task's pod and its step's command, from the compiled pipeline.

It follows their source (kubeflow/pipelines, `backend/src/v2/driver/resolve.go`, `component/launcher_v2.go`)
as far as inputs of tasks go, and makes pods in the shape of the recorded ones.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from google.protobuf import json_format

from podferry.contract.kfp_inputs import render

Json = dict[str, Any]
RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods" / "executor-parallelfor.json"
RUN = "c6560994-25fc-4601-b7b5-e2fc66f94fe0"
EXECUTION = "1e0890dc-6ef6-4095-90f8-b019577e9b20"


class CompiledPipeline:
    """A compiled pipeline whose tasks can be driven one by one."""

    def __init__(self, pipeline: Any, arguments: Mapping[str, Any]) -> None:
        self.spec: Json = json_format.MessageToDict(pipeline.pipeline_spec)
        self.platform: Json = json_format.MessageToDict(pipeline.platform_spec)
        self.name = self.spec["pipelineInfo"]["name"]
        declared = self.spec["root"].get("inputDefinitions", {}).get("parameters", {})
        defaults = {name: one["defaultValue"] for name, one in declared.items() if "defaultValue" in one}
        self.arguments = defaults | dict(arguments)

    def inputs(
        self,
        task: str,
        outputs: Mapping[str, Any] | None = None,
        dag: str = "",
        item: Mapping[str, Any] | None = None,
    ) -> Json:
        """The task's inputs as the driver resolves them.

        Args:
            task: Its name.
            outputs: Of other tasks, by `task.name`: values, or artifacts.
            dag: The component that contains it; empty for the pipeline itself.
            item: The inputs of that component.
        """
        body = self.spec["components"][dag]["dag"] if dag else self.spec["root"]["dag"]
        wanted = body["tasks"][task].get("inputs", {})
        outer, upstream = self.arguments if item is None else item, outputs or {}
        declared = self._component(task, body).get("inputDefinitions", {}).get("parameters", {})
        values = {
            name: _coerced(_resolved(one, outer, upstream), declared.get(name, {}))
            for name, one in wanted.get("parameters", {}).items()
        }
        artifacts = {
            name: {"artifacts": [_artifact(one, outer, upstream)]}
            for name, one in wanted.get("artifacts", {}).items()
        }
        return {"parameterValues": values, **({"artifacts": artifacts} if artifacts else {})}

    def pod(self, task: str, inputs: Json, node: str = "", dag: str = "") -> Json:
        """The executor's pod at admission; `node` is what is above the task in Argo's path."""
        body = self.spec["components"][dag]["dag"] if dag else self.spec["root"]["dag"]
        component = self._component(task, body)
        container = self.spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        pod: Json = copy.deepcopy(json.loads(RECORDED.read_text()))
        executor = self.platform.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {})
        settings = executor.get("executors", {}).get(component["executorLabel"], {})
        pod["metadata"]["annotations"] |= settings.get("podMetadata", {}).get("annotations", {})
        pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = self.node(task, node)
        main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
        main |= {"image": container["image"], "args": [*container["command"], *container.get("args", [])]}
        _set(main["command"], "--pipeline_name", self.name)
        _set(main["command"], "--run_id", RUN)
        _set(main["command"], "--executor_input", json.dumps(self._executor_input(task, inputs)))
        _set(main["command"], "--component_spec", json.dumps(component))
        return pod

    def command(self, task: str, inputs: Json) -> list[str]:
        """The command line of a lightweight step, after the launcher has filled it in."""
        component = self._component(task, self._dag_of(task))
        declared = component.get("inputDefinitions", {}).get("parameters", {})
        defaults = {name: one["defaultValue"] for name, one in declared.items() if "defaultValue" in one}
        filled = {**inputs, "parameterValues": defaults | inputs["parameterValues"]}
        text = json.dumps(self._executor_input(task, filled))
        for name, value in filled["parameterValues"].items():
            text = text.replace("{{$.inputs.parameters['" + name + "']}}", render(value))
        return ["executor_main.py", "--executor_input", text, "--function_to_execute", task]

    def environment(self, task: str, namespace: str, node: str = "") -> dict[str, str]:
        """What the step's pod sets from its own fields."""
        label = self._component(task, self._dag_of(task))["executorLabel"]
        settings = self.platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"][label]
        fields = {
            "metadata.namespace": namespace,
            "metadata.annotations['workflows.argoproj.io/node-name']": self.node(task, node),
        }
        return {one["name"]: fields[one["fieldPath"]] for one in settings["fieldPathAsEnv"]}

    def node(self, task: str, above: str = "") -> str:
        """Argo's path of the task's executor."""
        return f"{self.name}-6rbft(0).root(0).{above}{task}(0).executor(0)"

    def _executor_input(self, task: str, inputs: Json) -> Json:
        output = f"/minio/mlpipeline/v2/artifacts/{self.name}/{RUN}/{task}/{EXECUTION}/output_metadata.json"
        return {"inputs": inputs, "outputs": {"outputFile": output}}

    def _component(self, task: str, body: Json) -> Json:
        found: Json = self.spec["components"][body["tasks"][task]["componentRef"]["name"]]
        return found

    def _dag_of(self, task: str) -> Json:
        bodies = [self.spec["root"], *self.spec["components"].values()]
        found: Json = next(one["dag"] for one in bodies if task in one.get("dag", {}).get("tasks", {}))
        return found


def _resolved(one: Json, outer: Mapping[str, Any], upstream: Mapping[str, Any]) -> Any:
    if "runtimeValue" in one:
        return one["runtimeValue"]["constant"]
    if "componentInputParameter" in one:
        value = outer[one["componentInputParameter"]]
        selector = re.search(r'\["(.*)"\]', one.get("parameterExpressionSelector", ""))
        return value[selector[1]] if selector else value
    output = one["taskOutputParameter"]
    return upstream[f"{output['producerTask']}.{output['outputParameterKey']}"]


def _artifact(one: Json, outer: Mapping[str, Any], upstream: Mapping[str, Any]) -> Any:
    if "componentInputArtifact" in one:
        return outer[one["componentInputArtifact"]]
    output = one["taskOutputArtifact"]
    return upstream[f"{output['producerTask']}.{output['outputArtifactKey']}"]


def _coerced(value: Any, declared: Json) -> Any:
    """The driver converts what a declared text gets; nothing else, and nothing that is not declared."""
    return render(value) if declared.get("parameterType") == "STRING" else value


def _set(command: list[str], flag: str, value: str) -> None:
    command[command.index(flag) + 1] = value

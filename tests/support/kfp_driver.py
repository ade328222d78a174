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
FOLDER = "mlpipeline/v2/artifacts"
"""Bucket and prefix of the artifacts."""


class CompiledPipeline:
    """A compiled pipeline whose tasks can be driven one by one.

    Args:
        pipeline: A pipeline, or what KFP has loaded from its YAML.
        arguments: Its arguments.
        run: The run's id.
    """

    def __init__(self, pipeline: Any, arguments: Mapping[str, Any], run: str = RUN) -> None:
        self.run = run
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
        body = self.body(dag)
        wanted = body["tasks"][task].get("inputs", {})
        outer, upstream = self.arguments if item is None else item, outputs or {}
        declared = self._component(task, body).get("inputDefinitions", {}).get("parameters", {})
        values = {
            name: _coerced(self._resolved(one, outer, upstream), declared.get(name, {}))
            for name, one in wanted.get("parameters", {}).items()
        }
        artifacts = {
            name: {"artifacts": [_artifact(one, outer, upstream)]}
            for name, one in wanted.get("artifacts", {}).items()
        }
        return {"parameterValues": values, **({"artifacts": artifacts} if artifacts else {})}

    def pod(self, task: str, inputs: Json, node: str = "", dag: str = "") -> Json:
        """The executor's pod at admission; `node` is what is above the task in Argo's path."""
        body = self.body(dag)
        component = self._component(task, body)
        container = self.spec["deploymentSpec"]["executors"][component["executorLabel"]]["container"]
        pod: Json = copy.deepcopy(json.loads(RECORDED.read_text()))
        settings = self._platform_settings(component["executorLabel"])
        pod["metadata"]["annotations"] |= settings.get("podMetadata", {}).get("annotations", {})
        pod["metadata"]["annotations"]["workflows.argoproj.io/node-name"] = self.node(task, node)
        main = next(one for one in pod["spec"]["containers"] if one["name"] == "main")
        main |= {"image": container["image"], "args": [*container["command"], *container.get("args", [])]}
        main["resources"] = _resources(container.get("resources", {}))
        _set(main["command"], "--pipeline_name", self.name)
        _set(main["command"], "--run_id", self.run)
        pod["metadata"]["labels"]["pipeline/runid"] = self.run
        _set(main["command"], "--executor_input", _json(self._executor_input(task, inputs, component)))
        _set(main["command"], "--component_spec", _json(component))
        _extend(pod["spec"], main, settings)
        return pod

    def command(self, task: str, inputs: Json) -> list[str]:
        """The command line of a lightweight step, after the launcher has filled it in."""
        component = self._component(task, self._dag_of(task))
        declared = component.get("inputDefinitions", {}).get("parameters", {})
        defaults = {name: one["defaultValue"] for name, one in declared.items() if "defaultValue" in one}
        filled = {**inputs, "parameterValues": defaults | inputs["parameterValues"]}
        text = _json(self._executor_input(task, filled, component))
        for name, value in filled["parameterValues"].items():
            text = text.replace("{{$.inputs.parameters['" + name + "']}}", render(value))
        return ["executor_main.py", "--executor_input", text, "--function_to_execute", task]

    def environment(self, task: str, namespace: str, node: str = "") -> dict[str, str]:
        """What the step's pod sets from its own fields."""
        label = self._component(task, self._dag_of(task))["executorLabel"]
        settings = self._platform_settings(label)
        fields = {
            "metadata.namespace": namespace,
            "metadata.annotations['workflows.argoproj.io/node-name']": self.node(task, node),
        }
        return {one["name"]: fields[one["fieldPath"]] for one in settings["fieldPathAsEnv"]}

    def body(self, dag: str = "") -> Json:
        """The tasks of a component, or of the pipeline itself, with its outputs."""
        found: Json = self.spec["components"][dag]["dag"] if dag else self.spec["root"]["dag"]
        return found

    def node(self, task: str, above: str = "") -> str:
        """Argo's path of the task's executor."""
        return f"{self.name}-6rbft(0).root(0).{above}{task}(0).executor(0)"

    def _resolved(self, one: Json, outer: Mapping[str, Any], upstream: Mapping[str, Any]) -> Any:
        if "runtimeValue" in one:
            constant = one["runtimeValue"]["constant"]
            known = {"{{$.pipeline_job_uuid}}": self.run, "{{$.pipeline_job_name}}": "a-run"}
            return known.get(constant, constant) if isinstance(constant, str) else constant
        if "componentInputParameter" in one:
            value = outer[one["componentInputParameter"]]
            selector = re.search(r'\["(.*)"\]', one.get("parameterExpressionSelector", ""))
            return value[selector[1]] if selector else value
        output = one["taskOutputParameter"]
        return upstream[f"{output['producerTask']}.{output['outputParameterKey']}"]

    def _executor_input(self, task: str, inputs: Json, component: Json) -> Json:
        folder = f"{FOLDER}/{self.name}/{self.run}/{task}/{EXECUTION}"
        declared = component.get("outputDefinitions", {})
        parameters = {
            name: {"outputFile": f"/tmp/kfp/outputs/{name}"} for name in declared.get("parameters", {})
        }
        artifacts = {
            name: {
                "artifacts": [{"name": name, "type": one["artifactType"], "uri": f"minio://{folder}/{name}"}]
            }
            for name, one in declared.get("artifacts", {}).items()
        }
        outputs = {"parameters": parameters, "artifacts": artifacts}
        outputs = {kind: found for kind, found in outputs.items() if found}
        return {
            "inputs": inputs,
            "outputs": {**outputs, "outputFile": f"/minio/{folder}/output_metadata.json"},
        }

    def _platform_settings(self, label: str) -> Json:
        found = self.platform.get("platforms", {}).get("kubernetes", {}).get("deploymentSpec", {})
        settings: Json = found.get("executors", {}).get(label, {})
        return settings

    def _component(self, task: str, body: Json) -> Json:
        found: Json = self.spec["components"][body["tasks"][task]["componentRef"]["name"]]
        return found

    def _dag_of(self, task: str) -> Json:
        bodies = [self.spec["root"], *self.spec["components"].values()]
        found: Json = next(one["dag"] for one in bodies if task in one.get("dag", {}).get("tasks", {}))
        return found


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


def _json(value: Json) -> str:
    """As Go writes protobuf's doubles: 9, not 9.0."""

    def plain(one: Any) -> Any:
        if isinstance(one, float) and one.is_integer():
            return int(one)
        if isinstance(one, dict):
            return {name: plain(member) for name, member in one.items()}
        return [plain(member) for member in one] if isinstance(one, list) else one

    return json.dumps(plain(value))


def _resources(wanted: Json) -> Json:
    limits = {
        kind: wanted[field]
        for kind, field in (("cpu", "resourceCpuLimit"), ("memory", "resourceMemoryLimit"))
        if field in wanted
    }
    if accelerator := wanted.get("accelerator"):
        limits[accelerator["resourceType"]] = accelerator["resourceCount"]
    return {"limits": limits} if limits else {}


def _extend(spec: Json, main: Json, settings: Json) -> None:
    """Secrets and the pod's own fields: as volumes and variables of the main container."""
    for one in settings.get("secretAsVolume", []):
        secret = {"secretName": one["secretName"], "optional": one.get("optional", False)}
        spec["volumes"].append({"name": one["secretName"], "secret": secret})
        main["volumeMounts"].append({"name": one["secretName"], "mountPath": one["mountPath"]})
    for one in settings.get("secretAsEnv", []):
        where = {"name": one["secretName"], "optional": one.get("optional", False)}
        main["env"] += [
            {"name": key["envVar"], "valueFrom": {"secretKeyRef": {**where, "key": key["secretKey"]}}}
            for key in one["keyToEnv"]
        ]
    main["env"] += [
        {"name": one["name"], "valueFrom": {"fieldRef": {"fieldPath": one["fieldPath"]}}}
        for one in settings.get("fieldPathAsEnv", [])
    ]

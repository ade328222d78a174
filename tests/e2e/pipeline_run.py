"""Runs a compiled pipeline's steps as pods in the shape of KFP's, in their order.

Nothing of KFP's backend runs: `tests/support/kfp_driver.py`, `kfp_dag.py` and `kfp_launcher.py` stand in for
its drivers, Argo and the launcher. The pods, the webhook, the agents and the store are real.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kfp import compiler, components

from podferry.components.step import DEFAULT_IMAGE
from tests.cluster.cluster import Cluster
from tests.e2e.bucket import CREDENTIALS
from tests.e2e.install import ROOT
from tests.e2e.kfp_pods import runnable
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.support import kfp_launcher
from tests.support.kfp_dag import Execution, run_pipeline
from tests.support.kfp_driver import CompiledPipeline

STEPS_IMAGE = "localhost/podferry-steps:e2e-python3"
"""With `podferry[demo]`, for the steps and the trainings of the examples."""
LAUNCHER = Path(kfp_launcher.__file__).read_text()
STEP_SECONDS = 240.0
"""For one pod: several pipelines share two cores."""


class StepFailed(Exception):
    """A step's pod did not succeed; `outcome` says why."""

    def __init__(self, task: str, outcome: Outcome) -> None:
        super().__init__(f"{task}: {outcome}")
        self.task, self.outcome = task, outcome


def build_steps_image(cluster: Cluster) -> None:
    """Build `STEPS_IMAGE` as the documentation has it."""
    cluster.build_image(STEPS_IMAGE, ROOT / "Dockerfile.sidecar", ROOT, {"EXTRAS": "demo"})


def store_secret(name: str, endpoint: str) -> Object:
    """A Secret that says all about the store, as the examples expect it."""
    values = {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": values}


def compiled_text(pipeline: Any, folder: Path) -> str:
    """The YAML of a pipeline."""
    compiler.Compiler().compile(pipeline, str(folder / "pipeline.yaml"))
    return (folder / "pipeline.yaml").read_text()


class PipelineRun:
    """One run of a pipeline.

    Args:
        namespace: Its pods'; with `kfp_pods.FURNITURE`.
        text: The compiled pipeline; its images become `STEPS_IMAGE`.
        arguments: The pipeline's.

    Attributes:
        pods: What became of each step's pod, by Argo's path of the step.
    """

    def __init__(self, namespace: Namespace, text: str, arguments: Mapping[str, Any]) -> None:
        loaded = components.load_component_from_text(text.replace(DEFAULT_IMAGE, STEPS_IMAGE))
        self.compiled = CompiledPipeline(loaded, arguments, str(uuid.uuid4()))
        self._namespace = namespace
        self.pods: dict[str, Outcome] = {}

    def to_its_end(self) -> dict[str, Any]:
        """Run all steps; the pipeline's outputs.

        Raises:
            StepFailed: A step did not succeed.
        """
        return run_pipeline(self.compiled, self.step)

    def step(self, one: Execution) -> Mapping[str, Any]:
        """Run one step; its output parameters.

        Raises:
            StepFailed: It did not succeed.
        """
        outcome = self._namespace.run(self._pod(one), timeout=STEP_SECONDS)
        self.pods[self.compiled.node(one.task, one.above)] = outcome
        if not outcome.succeeded:
            raise StepFailed(one.task, outcome)
        _, said, outputs = outcome["main"].log.rpartition(kfp_launcher.OUTPUTS)
        assert said, outcome
        values: Mapping[str, Any] = json.loads(outputs).get("parameterValues", {})
        return values

    def _pod(self, one: Execution) -> Object:
        pod = self.compiled.pod(one.task, one.inputs, one.above, one.dag)
        identity = f"{self.compiled.run} {self.compiled.node(one.task, one.above)}"
        digits = int(hashlib.sha256(identity.encode()).hexdigest()[:8], 16)
        pod["metadata"]["name"] = f"{self.compiled.name}-6rbft-system-container-impl-{digits}"
        return runnable(pod, LAUNCHER, image=STEPS_IMAGE)

"""Steps that run jobs: their own process in the cluster's network, as the service account of KFP.

A step's pod is a recorded KFP pod that is never scheduled: it identifies the step, and owns the job.
"""

from __future__ import annotations

import contextlib
import copy
import json
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.cluster.cluster import Server
from tests.cluster.process import patient, wait_until
from tests.e2e.manifests import Object
from tests.e2e.namespace import Namespace

DEPLOY = Path(__file__).parents[2] / "deploy" / "kfp-jobs"
RECORDED = Path(__file__).parents[1] / "data" / "kfp-pods" / "executor-plain.json"
ACCOUNT = "pipeline-runner"
NEVER = [{"name": "podferry.test/never"}]
CODE = """
import importlib, json, sys
kind, inputs = sys.argv[1], json.loads(sys.argv[2])
component = importlib.import_module(f"podferry.components.training.{kind}.component")
print("outputs", json.dumps(getattr(component, kind).python_func(**inputs)))
"""


def role_for_jobs(namespace: str) -> list[Object]:
    """The Role of `deploy/kfp-jobs` and its binding, for a namespace."""
    role, binding = yaml.safe_load_all((DEPLOY / "role.yaml").read_text())
    binding["subjects"][0]["namespace"] = namespace
    return [role, binding]


@dataclass(frozen=True)
class Ended:
    """A step that has ended: its exit code and its log."""

    code: int
    log: str

    @property
    def outputs(self) -> list[str]:
        """The component's outputs, in their order."""
        found: list[str] = json.loads(self.log.rpartition("outputs ")[2])
        return found


class Step:
    """A running step."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def log(self) -> str:
        """What it has written so far."""
        return self._server.output

    def until_logged(self, text: str, timeout: float = 60.0) -> str:
        """Wait until it has written a text; its log then."""

        def written() -> str | None:
            if text in self.log:
                return self.log
            assert self._server.process.poll() is None, self.log
            return None

        return wait_until(f"the step to write {text!r}", written, timeout)

    def kill(self) -> None:
        """SIGKILL: as a node that is lost."""
        self._server.process.kill()
        self._server.process.wait()

    def cancel(self) -> Ended:
        """SIGTERM, and its end."""
        self._server.process.send_signal(signal.SIGTERM)
        return self.ended()

    def ended(self, timeout: float = 120.0) -> Ended:
        """Wait until it has ended."""
        code = self._server.process.wait(patient(timeout))
        return Ended(code, self.log)


class Steps:
    """The steps of one namespace.

    Attributes:
        namespace: Theirs; their jobs are in it too.
    """

    def __init__(self, namespace: Namespace, folder: Path) -> None:
        self.namespace, self._kubeconfig = namespace, folder / "kubeconfig"
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": ACCOUNT}}
        namespace.start(account)
        self._kubeconfig.write_text(yaml.safe_dump(self._account_config()))

    def _account_config(self) -> Object:
        config: Object = yaml.safe_load(self.namespace.cluster.kubeconfig.read_text())
        token = self.namespace.kubectl("create", "token", ACCOUNT).strip()
        [current] = [one for one in config["contexts"] if one["name"] == config["current-context"]]
        current["context"] |= {"user": ACCOUNT, "namespace": self.namespace.name}
        return config | {"users": [{"name": ACCOUNT, "user": {"token": token}}]}

    def allow(self) -> None:
        """Apply the Role of `deploy/kfp-jobs`, for this namespace."""
        self.namespace.start(*role_for_jobs(self.namespace.name))

    def pod(self, name: str, run: str) -> Object:
        """Create the pod of an attempt of a step, of one run."""
        pod: Object = copy.deepcopy(json.loads(RECORDED.read_text()))
        metadata = pod["metadata"]
        metadata |= {"name": name, "labels": {**metadata["labels"], "pipeline/runid": run}}
        for key in ("namespace", "ownerReferences", "uid"):
            metadata.pop(key, None)
        pod["spec"]["schedulingGates"] = NEVER
        pod.pop("status", None)
        self.namespace.start(pod)
        return pod

    @contextlib.contextmanager
    def started(self, kind: str, pod: Object, inputs: Object) -> Iterator[Step]:
        """Start the step's process for the block."""
        command = [sys.executable, "-u", "-c", CODE, kind, json.dumps(inputs)]
        environment = {"KUBECONFIG": str(self._kubeconfig), "KFP_POD_NAME": pod["metadata"]["name"]}
        with self.namespace.cluster.run_in_network(command, environment=environment) as server:
            yield Step(server)

    def run(self, kind: str, pod: Object, inputs: Object) -> Ended:
        """Run a step to its end."""
        with self.started(kind, pod, inputs) as step:
            return step.ended()

    def jobs(self, plural: str) -> list[Any]:
        """The jobs of the namespace."""
        found: list[Any] = self.namespace.get(plural)["items"]
        return found

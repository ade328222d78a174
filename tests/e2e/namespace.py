"""A test's namespace: creates objects in it and waits for their outcome."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from tests.cluster.cluster import Cluster, documents
from tests.cluster.process import ClusterError, patient, wait_until
from tests.e2e.bucket import Bucket
from tests.e2e.manifests import Object, podferry_annotations
from tests.e2e.outcome import Outcome, PodOutcome, ending

STORE_SECRET = "store"
DRY_RUN = ("create", "--dry-run=server", "-o", "json", "-f", "-")
"""Words of kubectl: an object on standard input is admitted and printed, but not created."""
T = TypeVar("T")


@dataclass(frozen=True)
class Answer:
    """The result of a kubectl command.

    Attributes:
        code: Its exit code.
        output: Standard output.
        errors: Standard error; warnings of the API server are there.
    """

    code: int
    output: str
    errors: str


class Namespace:
    """A namespace with the Secret `STORE_SECRET`, which opens the bucket."""

    def __init__(self, cluster: Cluster, bucket: Bucket, name: str) -> None:
        self.cluster = cluster
        self.bucket = bucket
        self.name = name

    def store_annotations(self, **values: str | int) -> dict[str, str]:
        """Annotations with endpoint and Secret filled in: `dataset_size` is `podferry.io/dataset-size`."""
        return podferry_annotations(endpoint=self.bucket.endpoint, secret=STORE_SECRET, **values)

    def training_annotations(
        self, dataset: str = "", checkpoints: str = "checkpoints", **values: str | int
    ) -> dict[str, str]:
        """Annotations of a usual training run: the dataset's URI, checkpoints of up to 8 MiB."""
        chosen: dict[str, str | int] = {}
        if dataset:
            chosen |= {"dataset": dataset, "dataset_size": "32Mi"}
        if checkpoints:
            chosen |= {"checkpoints": self.bucket.uri(checkpoints), "checkpoint_size": "8Mi"}
        return self.store_annotations(**(chosen | values))

    def lineage(self, name: str, kind: str = "job") -> str:
        """The lineage of an object in this namespace."""
        return f"{self.name}.{kind}.{name}"

    def kubectl(self, *words: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        """kubectl in this namespace.

        Raises:
            ClusterError: The command failed; with its message.
        """
        return self.cluster.kubectl("-n", self.name, *words, stdin=stdin, timeout=timeout)

    def ask(self, *words: str, stdin: str | None = None, timeout: float = 60.0) -> Answer:
        """kubectl in this namespace, also if it fails: code, output and warnings."""
        command = [*self.cluster.backend.kubectl, "-n", self.name, *words]
        limit = patient(timeout)
        done = subprocess.run(
            command, input=stdin, capture_output=True, text=True, timeout=limit, check=False
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    def get(self, *words: str) -> Any:
        """`kubectl get WORDS -o json` in this namespace, decoded."""
        return self.cluster.get("-n", self.name, *words)

    def create(self, *objects: Object) -> Answer:
        """`kubectl create`, which may be refused: look at the code."""
        return self.ask("create", "-f", "-", stdin=documents(objects))

    def try_create(self, manifest: Object) -> Answer:
        """Its creation as a dry run, webhooks included, which may be refused: look at the code."""
        return self.ask(*DRY_RUN, stdin=json.dumps(manifest))

    def dry_run(self, manifest: Object) -> Object:
        """An object as it would be created now, after all webhooks.

        Raises:
            ClusterError: It would be refused; with the message.
        """
        made: Object = json.loads(self.kubectl(*DRY_RUN, stdin=json.dumps(manifest)))
        return made

    def run(self, manifest: Object, timeout: float = 60.0) -> Outcome:
        """Create a pod or a Job, wait until it has ended, and return its outcome.

        Raises:
            ClusterError: It was refused, or has not ended within `timeout` seconds; with its description.
        """
        self.start(manifest)
        return self.outcome(manifest, timeout)

    def start(self, *objects: Object) -> Answer:
        """Create objects that must not be refused."""
        answer = self.create(*objects)
        if answer.code:
            raise ClusterError(answer.errors)
        return answer

    def outcome(self, manifest: Object, timeout: float = 60.0) -> Outcome:
        """Wait until a pod or a Job has ended, and return its outcome."""
        kind, name = manifest["kind"].lower(), manifest["metadata"]["name"]
        phase, reason, message = self.until(
            f"{kind} {name} to end", lambda: ending(self.get(kind, name)), timeout
        )
        return Outcome(phase, reason, message, tuple(map(self._collect, self.pods(manifest))))

    def pods(self, manifest: Object) -> list[dict[str, Any]]:
        """The pods of a Job, or the pod itself, oldest first."""
        name = manifest["metadata"]["name"]
        if manifest["kind"] == "Pod":
            return [self.get("pod", name)]
        found = self.get("pods", "-l", f"batch.kubernetes.io/job-name={name}")["items"]
        return sorted(found, key=lambda one: str(one["metadata"]["creationTimestamp"]))

    def pod(self, manifest: Object, timeout: float = 20.0) -> PodOutcome:
        """The newest pod of a Job, or the pod itself, in its current state."""
        found = self.until("a pod", lambda: self.pods(manifest), timeout)
        return self._collect(found[-1])

    def until(self, what: str, probe: Callable[[], T | None], timeout: float = 60.0) -> T:
        """Call `probe` until it returns something true; a timeout describes all pods of the namespace."""
        try:
            return wait_until(what, probe, timeout, interval=0.25)
        except ClusterError as error:
            raise ClusterError(f"{error}\n{self.describe()}") from error

    def until_container(
        self, manifest: Object, container: str, state: str = "running", timeout: float = 60.0
    ) -> PodOutcome:
        """Wait until a container of the newest pod is in a state; the pod then."""

        def reached() -> PodOutcome | None:
            for one in self.pods(manifest)[-1:]:
                known = PodOutcome(one, {}).containers.get(container)
                if known and state in known.state:
                    return PodOutcome(one, {})
            return None

        return self.until(f"container {container} to be {state}", reached, timeout)

    def until_logged(self, manifest: Object, container: str, text: str, timeout: float = 60.0) -> str:
        """Wait until a container of the newest pod has written a text; its log then."""

        def logged() -> str | None:
            for one in self.pods(manifest)[-1:]:
                log = self.log(one["metadata"]["name"], container)
                if text in log:
                    return log
            return None

        return self.until(f"{container} to write {text!r}", logged, timeout)

    def log(self, pod: str, container: str) -> str:
        """What a container has written; empty if it has not started."""
        with contextlib.suppress(ClusterError):
            return self.kubectl("logs", pod, "-c", container)
        return ""

    def exec(self, pod: str, container: str, *command: str) -> str:
        """Run a command in a container; return its output."""
        return self.kubectl("exec", pod, "-c", container, "--", *command)

    def delete(self, manifest: Object, *words: str, timeout: float = 60.0) -> None:
        """Delete an object and wait until it is gone, a Job's pods as well."""
        kind, name = manifest["kind"].lower(), manifest["metadata"]["name"]
        self.kubectl("delete", kind, name, "--cascade=foreground", *words, timeout=timeout)

    def events(self, name: str) -> list[Mapping[str, Any]]:
        """The events about an object of that name."""
        return list(self.get("events", "--field-selector", f"involvedObject.name={name}")["items"])

    def describe(self) -> str:
        """All pods of the namespace with their events and logs."""
        described = self.ask("describe", "jobs,pods").output
        return "\n".join([described, *(str(self._collect(one)) for one in self.get("pods")["items"])])

    def _collect(self, one: Mapping[str, Any]) -> PodOutcome:
        name = one["metadata"]["name"]
        names = [
            each["name"] for part in ("initContainers", "containers") for each in one["spec"].get(part, [])
        ]
        return PodOutcome(one, {each: self.log(name, each) for each in names})


def create_namespace(namespace: Namespace, credentials: Mapping[str, str], labels: Mapping[str, str]) -> None:
    """Make the namespace and its Secret."""
    namespace.cluster.create_namespace(namespace.name, labels)
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": STORE_SECRET}}
    namespace.kubectl("create", "-f", "-", stdin=json.dumps({**secret, "stringData": dict(credentials)}))

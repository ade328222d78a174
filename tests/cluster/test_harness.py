"""The cluster that end-to-end tests get is a real one."""

from __future__ import annotations

import base64
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster import traces
from tests.cluster.cluster import Cluster
from tests.cluster.helpers import command_line, container, init_of, listening, pod, running, service
from tests.cluster.layout import GPUS, NODE, Layout
from tests.cluster.node import Node
from tests.cluster.process import OWNER, ClusterError, ProcessId, owned, patient, run, wait_until
from tests.cluster.supervisor import ROOT

# Fixtures do not count: the first run builds Kubernetes and the base image, in minutes.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(patient(240), func_only=True)]

SIDECAR = """
import pathlib, signal, sys, time
def end(*_):
    print("stopped", time.time(), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
pathlib.Path("/stage/ready").write_text("x" * 4096)
print("filled", flush=True)
while True:  # a signal just before `signal.pause` would be missed
    time.sleep(0.05)
"""
TRAINER = """
import os, pathlib, time
assert pathlib.Path("/stage/ready").stat().st_size == 4096
assert [line for line in open("/proc/mounts") if line.split()[1:3] == ["/stage", "tmpfs"]]
print("trained", time.time(), flush=True)
"""
WEBHOOK = """
import base64, http.server, json, ssl
PATCH = [{"op": "add", "path": "/metadata/annotations", "value": {"seen": "by-the-webhook"}}]
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = {"uid": review["request"]["uid"], "allowed": True, "patchType": "JSONPatch",
                  "patch": base64.b64encode(json.dumps(PATCH).encode()).decode()}
        body = json.dumps({**review, "response": answer}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
context.load_cert_chain("/tls/tls.crt", "/tls/tls.key")
server = http.server.ThreadingHTTPServer(("", 8443), Handler)
server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
"""
FETCH = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster of this module's own, with the base image."""
    harness = Cluster(Node(Layout.of(name="harness")))
    harness.down()
    harness.up()
    harness.load_base_image()
    yield harness
    harness.down()


def succeeded(cluster: Cluster, name: str) -> str:
    cluster.wait(f"pod/{name}", "jsonpath={.status.phase}=Succeeded")
    return cluster.kubectl("logs", name, "--all-containers")


def test_the_node_is_ready_and_claims_gpus(cluster: Cluster) -> None:
    status = cluster.get("node", NODE)["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions["Ready"] == "True"
    assert status["allocatable"]["nvidia.com/gpu"] == str(GPUS)


def test_up_again_keeps_the_running_cluster(cluster: Cluster) -> None:
    before = init_of(Layout.of(name="harness"))
    cluster.up()
    assert init_of(Layout.of(name="harness")) == before


def test_a_pod_with_a_native_sidecar_and_memory_completes(cluster: Cluster) -> None:
    stage = {"volumeMounts": [{"name": "stage", "mountPath": "/stage"}]}
    filled = {"exec": {"command": ["test", "-f", "/stage/ready"]}, "periodSeconds": 1}
    sidecar = container(
        "sidecar", "python3", "-c", SIDECAR, restartPolicy="Always", startupProbe=filled, **stage
    )
    volume = {"name": "stage", "emptyDir": {"medium": "Memory", "sizeLimit": "16Mi"}}
    trainer = container("trainer", "python3", "-c", TRAINER, **stage)
    cluster.apply(pod("sidecar", trainer, initContainers=[sidecar], volumes=[volume]))
    cluster.wait("pod/sidecar", "jsonpath={.status.phase}=Succeeded")
    trained = float(cluster.kubectl("logs", "sidecar", "-c", "trainer").split()[1])
    stopped = cluster.kubectl("logs", "sidecar", "-c", "sidecar").split()
    assert stopped[:2] == ["filled", "stopped"]
    assert float(stopped[2]) > trained


def test_a_pod_that_asks_for_a_gpu_is_placed_and_runs(cluster: Cluster) -> None:
    wants = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    cluster.apply(pod("gpu", container("main", "python3", "-c", "print('placed')", **wants)))
    assert succeeded(cluster, "gpu") == "placed\n"


def test_a_pod_and_this_process_reach_a_pod_through_its_service(cluster: Cluster) -> None:
    serve = container(
        "main", "python3", "-m", "http.server", "8080", workingDir="/etc", readinessProbe=listening(8080)
    )
    cluster.apply(pod("files", serve), service("files", 8080))
    cluster.wait("pod/files", "condition=Ready")
    address = cluster.get("service", "files")["spec"]["clusterIP"]
    cluster.apply(
        pod("client", container("main", "python3", "-c", FETCH, f"http://{address}/debian_version"))
    )
    assert succeeded(cluster, "client").startswith("12")
    with cluster.network(), urllib.request.urlopen(f"http://{address}/debian_version", timeout=10) as answer:
        assert answer.read().startswith(b"12")


def test_a_pod_reaches_a_server_of_the_test(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "greeting").write_text("hello from the host")
    command = [sys.executable, "-m", "http.server", "9009", "--directory", str(tmp_path)]
    with cluster.run_in_network(command, port=9009) as server:
        url = f"http://{cluster.host_address}:9009/greeting"
        cluster.apply(pod("guest", container("main", "python3", "-c", FETCH, url)))
        assert succeeded(cluster, "guest") == "hello from the host\n"
        assert "GET /greeting" in server.output
    assert server.process.returncode == -signal.SIGTERM


def test_a_server_that_does_not_start_says_why(cluster: Cluster) -> None:
    broken = [sys.executable, "-c", "raise SystemExit('no such bucket')"]
    with pytest.raises(ClusterError, match="no such bucket"), cluster.run_in_network(broken, port=9010):
        pass


def test_the_api_server_reaches_a_webhook_through_its_service(cluster: Cluster, tmp_path: Path) -> None:
    certificate, key = tmp_path / "tls.crt", tmp_path / "tls.key"
    name = "webhook.default.svc"
    subject = ["-subj", f"/CN={name}", "-addext", f"subjectAltName=DNS:{name}"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", *subject, *files])
    cluster.kubectl("create", "secret", "tls", "webhook", f"--cert={certificate}", f"--key={key}")
    mount = {"volumeMounts": [{"name": "tls", "mountPath": "/tls"}], "readinessProbe": listening(8443)}
    volume = {"name": "tls", "secret": {"secretName": "webhook"}}
    cluster.apply(
        pod("webhook", container("main", "python3", "-c", WEBHOOK, **mount), volumes=[volume]),
        service("webhook", 8443),
    )
    cluster.wait("pod/webhook", "condition=Ready")
    cluster.apply(registration(certificate.read_bytes()))
    try:
        wait_until("the webhook to be asked", lambda: _annotated(cluster), 30, interval=0.5)
    finally:
        cluster.kubectl("delete", "mutatingwebhookconfiguration", "harness")


def registration(authority: bytes) -> dict[str, Any]:
    reference = {"name": "webhook", "namespace": "default", "port": 80}
    webhook = {
        "name": "harness.podferry.io",
        "clientConfig": {"service": reference, "caBundle": base64.b64encode(authority).decode()},
        "rules": [
            {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
        ],
        "objectSelector": {"matchLabels": {"app": "asked"}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
    }
    kind = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration"}
    return {**kind, "metadata": {"name": "harness"}, "webhooks": [webhook]}


def _annotated(cluster: Cluster) -> bool:
    """Whether the webhook is asked: the API server hears of it, and of its endpoints, after a moment."""
    asked = json.dumps(pod("asked", container("main", "true")))
    try:
        answer = cluster.kubectl("create", "--dry-run=server", "-o", "json", "-f", "-", stdin=asked)
    except ClusterError as error:
        if "failed calling webhook" not in str(error):
            raise
        return False
    return "seen" in json.loads(answer)["metadata"].get("annotations", {})


def test_a_dockerfile_installs_from_the_package_index_and_runs(cluster: Cluster, tmp_path: Path) -> None:
    lines = [
        "ARG BASE=python:3.11-slim-bookworm",
        "FROM ${BASE}",
        "RUN pip install --no-cache-dir msgspec",
        "COPY main.py /main.py",
        'CMD ["python", "/main.py"]',
    ]
    (tmp_path / "Dockerfile").write_text("\n".join(lines))
    report = "import msgspec, os; print(msgspec.json.encode([1]).decode(), os.path.getsize('/etc/pip.conf'))"
    (tmp_path / "main.py").write_text(report)
    cluster.build_image("localhost/harness:1", tmp_path / "Dockerfile", tmp_path)
    main = {"name": "main", "image": "localhost/harness:1"}
    cluster.apply(pod("built", main))
    # Nothing of this machine's pip configuration has stayed in the image.
    assert succeeded(cluster, "built") == "[1] 0\n"


def test_a_build_that_is_killed_leaves_nothing_and_does_not_spoil_the_next(
    cluster: Cluster, tmp_path: Path
) -> None:
    before = traces.of_host()
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN sleep 61803")
    words = ["build-image", "localhost/harness:2", str(tmp_path / "Dockerfile"), str(tmp_path)]
    building = command_line(Layout.of(name="harness"), *words)
    wait_until("the build to run its command", lambda: running(b"sleep\x0061803"), 60)
    building.kill()
    building.wait()
    wait_until("the build's processes to end", lambda: not running(b"sleep\x0061803"), 10)
    assert traces.of_host() - before == set()
    (tmp_path / "Dockerfile").write_text("ARG BASE\nFROM ${BASE}\nRUN true")
    cluster.build_image("localhost/harness:2", tmp_path / "Dockerfile", tmp_path)


def test_a_timeout_describes_the_object(cluster: Cluster) -> None:
    cluster.apply(pod("absent", container("main", "true") | {"image": "localhost/no-such-image:1"}))
    with pytest.raises(ClusterError, match=r"no-such-image"):
        cluster.wait("pod/absent", "condition=Ready", timeout=2)


def test_a_server_ends_with_a_killed_test_run(cluster: Cluster) -> None:
    program = (
        "from tests.cluster.cluster import Cluster\n"
        "from tests.cluster.layout import Layout\n"
        "from tests.cluster.node import Node\n"
        "with Cluster(Node(Layout.of(name='harness'))).run_in_network(['sleep', '666']):\n"
        "    import signal; signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as test_run:
        try:
            [server] = wait_until("the server to run", _servers, 20)
        finally:
            test_run.kill()
    wait_until("the server to end", lambda: not server.alive, 10)


def _servers() -> list[ProcessId]:
    candidates = owned(str(Layout.of(name="harness").state))
    return [process for process in candidates if process.program == "sleep"]


def test_every_process_has_the_owner_variable(cluster: Cluster) -> None:
    environment = Path(f"/proc/{init_of(Layout.of(name='harness')).pid}/environ").read_bytes()
    assert f"{OWNER}={Layout.of(name='harness').state}".encode() in environment.split(b"\0")

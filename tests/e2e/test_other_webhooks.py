"""Pods that other webhooks change too: meshes, identities, Katib; and annotations that no pod can have."""

from __future__ import annotations

import contextlib
import json
import re
import sys
from collections.abc import Iterator
from urllib.parse import urlsplit

from podferry.contract.exit_codes import EXIT_NEVER
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.cluster.cluster import documents
from tests.cluster.process import wait_until
from tests.e2e.manifests import TRAINER, Object, container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.other_webhooks import CREDENTIALS_PORT, PROXY_ANNOTATION, STORE_PORT
from tests.e2e.outcome import moment
from tests.e2e.site import Site
from tests.e2e.trainers import COMMON, assert_unharmed, release_trainer

MIB = 1 << 20
OTHERS = "e2e.podferry.io/others"
"""Label of namespaces for the stand-ins."""
PROXY = "istio-proxy"
FORWARDER = """
import asyncio, os, signal
async def pump(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()

def forward(host, port):
    async def connected(reader, writer):
        theirs, ours = await asyncio.open_connection(host, port)
        await asyncio.gather(pump(reader, ours), pump(theirs, writer))
    return connected

async def main():
    for port, target in {targets}.items():
        await asyncio.start_server(forward(*target), "0.0.0.0", port)
    await asyncio.Event().wait()

signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # at once, like a proxy without connections
asyncio.run(main())
"""
TRAINS = f"""{COMMON}
for step in (1, 2, 3):
    write(step, {2 * MIB})
"""
COLLECTS = """
import pathlib, time
found = {}
for one in pathlib.Path("/proc").iterdir():
    if one.name.isdigit() and "PPid:\\t0\\n" in (one / "status").read_text():
        found[one.name] = (one / "cmdline").read_bytes().replace(b"\\0", b" ").decode(errors="replace")
print(*(" ".join(line.split())[:200] for line in found.values()), sep="\\n", flush=True)
main = next((one for one, line in found.items() if "this " + "trains" in line), "none")
while pathlib.Path("/proc", main).exists():
    time.sleep(0.1)
"""


def proxy_container(store: str, credentials: tuple[str, int]) -> Object:
    """A native sidecar that carries the pod's traffic: nothing else leads to the store."""
    address = urlsplit(store)
    targets = {STORE_PORT: (address.hostname, address.port), CREDENTIALS_PORT: credentials}
    made = container(PROXY, FORWARDER.replace("{targets}", repr(targets)))
    probe = {"tcpSocket": {"port": STORE_PORT}, "periodSeconds": 1, "failureThreshold": 30}
    return {**made, "restartPolicy": "Always", "startupProbe": probe}


def webhook(name: str, path: str, url: str, ca: str) -> Object:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    one = {
        "name": f"{path}.e2e.podferry.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"url": f"{url}/{path}", "caBundle": ca},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {OTHERS: "true"}},
        "sideEffects": "None",
        "reinvocationPolicy": "Never",
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [one],
    }


@contextlib.contextmanager
def other_webhooks(site: Site) -> Iterator[int]:
    """The webhook of an identity comes before podferry's, that of a mesh after it. The identity's port."""
    host = site.cluster.host_address
    command = [sys.executable, "-m", "tests.e2e.other_webhooks", host]
    with site.cluster.run_in_network(command) as server:
        line = wait_until("the webhooks to serve", lambda: re.search("serving (.*})", server.output), 20)[1]
        serving = json.loads(line)
        url = f"https://{host}:{serving['webhooks']}"
        made = [
            webhook("a-identity.e2e", "identity", url, serving["ca"]),
            webhook("z-mesh.e2e", "mesh", url, serving["ca"]),
        ]
        site.cluster.kubectl("create", "-f", "-", stdin=documents(made))
        try:
            yield serving["credentials"]
        finally:
            site.cluster.kubectl("delete", "-f", "-", stdin=documents(made))


def test_the_agent_has_the_trainers_identity_and_ends_before_the_meshs_proxy(site: Site) -> None:
    """What is left to upload at the end is durable; the proxy leads to the store and to the identity."""
    with other_webhooks(site) as credentials, site.namespace({OTHERS: "true"}) as namespace:
        proxy = proxy_container(site.bucket.endpoint, (site.cluster.host_address, credentials))
        annotations = podferry_annotations(
            checkpoints=site.bucket.uri("checkpoints"),
            checkpoint_size="4Mi",
            upload_limit="2Mi",
            endpoint=f"http://127.0.0.1:{STORE_PORT}",
            lineage=namespace.name,
        )
        annotations[PROXY_ANNOTATION] = json.dumps(proxy)
        manifest = pod("meshed", container(script=TRAINS), annotations=annotations)
        outcome = namespace.run(manifest)
    commits = site.bucket.commits(namespace.name)
    assert [one.step for one in commits][-1:] == [3], outcome
    assert site.bucket.committed(commits[-1]) == {"step-3.bin": b"3" * 2 * MIB}
    assert_unharmed(outcome, PROXY)
    order = [one["name"] for one in outcome.pod.object["spec"]["initContainers"]]
    assert order == [PROXY, SIDECAR, GATE]
    ended = [moment(outcome[name].state["terminated"]["finishedAt"]) for name in (TRAINER, SIDECAR, PROXY)]
    assert ended == sorted(ended)
    assert (ended[1] - ended[0]).total_seconds() >= 1  # there was something left to upload


def test_a_proxy_among_the_ordinary_containers_is_refused_with_the_remedy(namespace: Namespace) -> None:
    meshed = pod(
        "classic",
        container(command=["true"]),
        container(PROXY, command=["true"]),
        annotations=namespace.training_annotations(container=TRAINER),
    )
    answer = namespace.create(meshed)
    assert answer.code == 1
    assert 'sidecar.istio.io/nativeSidecar: "true"' in answer.errors


def test_katibs_collector_in_a_shared_process_namespace(namespace: Namespace) -> None:
    """It would wait for the agent; one that waits for the trainer alone ends, and then the agent."""
    collector, shared = "metrics-logger-and-collector", {"shareProcessNamespace": True}
    trainer = container(script=f"{COMMON}\nthis = 'this trains'\nwrite(1, 1000)")
    annotations = namespace.training_annotations(container=TRAINER, lineage=namespace.name)
    waits = container(collector, COLLECTS, args=["-w", "true"])
    answer = namespace.create(pod("waits", trainer, waits, annotations=annotations, **shared))
    assert (answer.code, "waitAllProcesses: false" in answer.errors) == (1, True), answer
    collects = container(collector, COLLECTS, args=["-w", "false"])
    outcome = namespace.run(pod("trial", trainer, collects, annotations=annotations, **shared))
    assert outcome.succeeded, outcome
    assert {one.exit_code for one in outcome.pod.containers.values()} == {0}, outcome
    assert "podferry agent" in outcome[collector].log
    assert [one.step for one in namespace.bucket.commits(namespace.name)] == [1]


def test_pods_on_the_nodes_network_have_agents_of_their_own(namespace: Namespace) -> None:
    """Both run at once on one node; each gate and each trainer finds its own agent."""
    script = f"{COMMON}\nwait_for('other')\nwrite(int(os.environ['STEP']), 1000)"
    pods = [
        pod(
            f"host-{step}",
            container(script=script, env=[{"name": "STEP", "value": str(step)}]),
            annotations=namespace.training_annotations(lineage=f"{namespace.name}-{step}"),
            hostNetwork=True,
        )
        for step in (1, 2)
    ]
    namespace.start(*pods)
    for one in pods:
        namespace.until_container(one, TRAINER)
    for one in pods:
        release_trainer(namespace, one["metadata"]["name"], "other")
    for step, one in enumerate(pods, start=1):
        assert_unharmed(namespace.outcome(one))
        assert [each.step for each in namespace.bucket.commits(f"{namespace.name}-{step}")] == [step]


def test_locations_in_the_pod_are_refused(namespace: Namespace) -> None:
    wrong = podferry_annotations(
        dataset="file:///podferry/secrets/checkpoints",
        dataset_size="1Mi",
        checkpoints="file:///results",
        checkpoint_size="1Mi",
    )
    answer = namespace.create(pod("local", container(command=["true"]), annotations=wrong))
    assert answer.code == 1
    for key in ("dataset", "checkpoints"):
        assert f"podferry.io/{key}: not a store" in answer.errors


def test_the_longest_annotations_are_refused_by_a_gate_that_starts(namespace: Namespace) -> None:
    """A Job of a CronJob is not validated."""
    annotations = namespace.training_annotations(checkpoint_size="x" * 200_000)
    template = job("long", container(command=["true"]), annotations=annotations)
    schedule = {"schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": template["spec"]}}
    metadata = {"name": "long"}
    namespace.start({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": metadata, "spec": schedule})
    namespace.kubectl("create", "job", "long", "--from=cronjob/long")
    outcome = namespace.outcome(template)
    assert outcome[GATE].exit_code == EXIT_NEVER
    assert "characters left out" in outcome[GATE].message
    assert "Write a number with a suffix" in outcome[GATE].message


def test_windows_pods_and_mirror_pods_are_untouched(namespace: Namespace) -> None:
    annotations = namespace.training_annotations()
    windows = pod(
        "windows", container(), annotations=annotations, nodeSelector={"kubernetes.io/os": "windows"}
    )
    mirror = pod(
        "mirror",
        container(),
        annotations={**annotations, "kubernetes.io/config.mirror": "0f"},
        nodeName="node",
    )
    for one in (windows, mirror):
        answer = namespace.try_create(one)
        assert answer.code == 0, answer.errors
        made = json.loads(answer.output)
        assert "initContainers" not in made["spec"]
        assert "podferry.io/status" not in made["metadata"]["annotations"]
        assert "Windows" in answer.errors or one is mirror

"""A cache on two nodes: what the source sends, where pods go, and what they do when holders are lost.

A cluster of two nodes is started for them, next to the ordinary one: `make e2e-two-nodes`, not `make e2e`.
They run in this order, on one cache.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.cluster.cluster import Cluster, choose
from tests.cluster.files import locked
from tests.cluster.layout import Layout
from tests.cluster.node import Node
from tests.cluster.process import ClusterError, wait_until
from tests.e2e.figures import Figures
from tests.e2e.install import IMAGE
from tests.e2e.manifests import container, job, pod
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.site import Site, site_of
from tests.e2e.store_proxy import StoreProxy, store_proxy
from tests.e2e.two_nodes import TwoNodeCache, kill, on, sent_by, slow_down, store_secret

pytestmark = pytest.mark.two_nodes

FILES = {f"{n % 4}/{n}.bin": hashlib.shake_256(bytes([n])).digest(1 << 19) for n in range(32)}
BYTES = sum(map(len, FILES.values()))
ONCE = 1.02 * BYTES
"""The dataset once, with the heads of responses and some lists."""
LITTLE = 0.02 * BYTES
SLOW = 6_000_000
"""Bytes a second of a source that is not fast."""
DIGESTS = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
TRAIN = f"""
import hashlib, os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
"""
ASK = """
import pathlib, subprocess, sys, urllib.error, urllib.request
url, uri, endpoint = sys.argv[1:]
for name in ("none", "other", "right"):
    file = pathlib.Path("/tokens", name)
    headers = {"Authorization": f"Bearer {file.read_text()}"} if file.exists() else {}
    try:
        urllib.request.urlopen(urllib.request.Request(f"{url}/v1/status", headers=headers), timeout=60)
    except urllib.error.HTTPError as error:
        print(name, error.code, flush=True)
command = ["podferry", "dataset", "get", "--cache", url, "--endpoint", endpoint, uri, "/tmp/stage"]
subprocess.run(command, check=True)
"""


@pytest.fixture(scope="module")
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Two nodes with podferry and a bucket; they end with this module."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    cluster = Cluster(choose(nodes=2))
    with ExitStack() as stack:
        with capture.global_and_fixture_disabled():
            stack.enter_context(locked(Layout.of(nodes=2).tests_lock))
            made = stack.enter_context(site_of(cluster, tmp_path_factory.mktemp("bucket")))
        try:
            cluster.require_nodes(2)
        except ClusterError as error:
            pytest.skip(str(error))
        yield made


@pytest.fixture(scope="module")
def proxy(site: Site) -> Iterator[StoreProxy]:
    """Between the source and everybody who reads it."""
    with store_proxy(site.cluster, site.bucket) as made:
        yield made


@pytest.fixture(scope="module")
def readers(site: Site) -> Iterator[Namespace]:
    """The namespace whose pods may read."""
    with site.namespace() as made:
        yield made


@pytest.fixture(scope="module")
def uri(site: Site) -> str:
    """Of the dataset."""
    return site.upload_dataset("two-nodes", FILES)


@pytest.fixture(scope="module")
def cache(site: Site, proxy: StoreProxy, readers: Namespace, uri: str) -> Iterator[TwoNodeCache]:
    """With two holders, each of which has all."""
    with store_secret(site):
        made = TwoNodeCache(site, proxy, readers)
        made.create(site.bucket.podferry("dataset", "freeze", uri).strip(), nodes=2)
        made.scale(2)
        made.wait_for_webhook()
        yield made
        made.remove()


@pytest.fixture
def killable(cache: TwoNodeCache) -> TwoNodeCache:
    """The cache, if the processes of its holders run on this machine."""
    if not isinstance(cache.site.cluster.backend, Node):
        pytest.skip("the processes of this cluster are not ours to kill")
    return cache


def train(cache: TwoNodeCache, name: str, pods: int, **spec: Any) -> list[dict[str, Any]]:
    """Run a Job whose pods start at once; the pods, which have all succeeded."""
    wanted = {"parallelism": pods, "completions": pods}
    made = job(name, container(script=TRAIN), annotations=cache.annotations(), job_spec=wanted, **spec)
    outcome = cache.readers.run(made, 240)
    assert outcome.succeeded, outcome
    return cache.readers.pods(made)


def nodes_of(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(one["spec"]["nodeName"] for one in pods)


def test_two_holders_take_the_dataset_once(cache: TwoNodeCache, figures: Figures) -> None:
    seconds = {}
    for holders in (1, 2):
        cache.scale(0)
        cache.proxy.throttle(SLOW)
        with cache.counted() as source:
            began = time.monotonic()
            cache.scale(holders)
            cache.warm()
            seconds[holders] = time.monotonic() - began
        cache.proxy.release()
        assert BYTES <= sum(source.values()) < ONCE, source
    assert sorted(cache.holders()) == sorted(cache.nodes)
    times = {f"{count} holders s": round(took, 1) for count, took in seconds.items()}
    figures.record("two nodes", {"source bytes / dataset": round(sum(source.values()) / BYTES, 3), **times})


@pytest.mark.parametrize("spread", [False, True])
def test_eight_pods_at_once_take_the_dataset_once(cache: TwoNodeCache, *, spread: bool) -> None:
    cache.scale(0)
    cache.proxy.throttle(SLOW)
    constraint = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"batch.kubernetes.io/job-name": "eight-spread"}},
    }
    with cache.counted() as source:
        cache.scale(2)
        if spread:
            pods = train(cache, "eight-spread", 8, topologySpreadConstraints=[constraint])
        else:
            pods = train(cache, "eight", 8, **on(cache.nodes[1]))
        cache.warm()
    cache.proxy.release()
    assert nodes_of(pods) == sorted((cache.nodes if spread else [cache.nodes[1]] * 2) * 4)
    assert BYTES <= sum(source.values()) < ONCE, source


def test_pods_go_to_the_data_and_others_take_it_from_there(cache: TwoNodeCache) -> None:
    cache.scale(1)
    cache.warm()
    [near] = cache.holders()
    [far] = set(cache.nodes) - {near}
    with cache.counted() as source:
        assert nodes_of(train(cache, "near", 4)) == [near] * 4
        assert nodes_of(train(cache, "far", 1, **on(far))) == [far]
        cache.scale(2)
        cache.warm()
    assert sum(source.values()) < LITTLE, source


def test_a_holder_that_is_killed_while_it_serves_costs_speed_alone(killable: TwoNodeCache) -> None:
    cache = killable
    cache.scale(1)
    cache.warm()
    [(near, holder)] = cache.holders().items()
    [far] = set(cache.nodes) - {near}
    is_slow = slow_down(holder)
    reader = pod("reader", container(script=TRAIN), annotations=cache.annotations(), **on(far))
    cache.readers.start(reader)
    cache.readers.until_container(reader, "podferry")
    if is_slow:
        wait_until("the holder to serve", lambda: sent_by(holder) > BYTES / 4, 60)
    kill(holder)
    outcome = cache.readers.outcome(reader, 120)
    assert outcome.succeeded, outcome


def test_a_holder_that_is_killed_while_it_fills_continues(killable: TwoNodeCache) -> None:
    cache = killable
    cache.scale(0)
    cache.proxy.throttle(SLOW)
    before = cache.proxy.sent().total()
    cache.scale(2)
    wait_until("a part to be fetched", lambda: cache.proxy.sent().total() - before > BYTES / 4, 60)
    kill(cache.holders()[cache.nodes[0]])
    train(cache, "filling", 2)
    cache.warm()
    cache.proxy.release()


def test_a_holder_that_was_deleted_takes_all_from_the_other(cache: TwoNodeCache) -> None:
    cache.warm()
    with cache.counted() as source:
        cache.verb("clear", "--node", cache.nodes[0])
        train(cache, "deleted", 2)
        cache.warm()
    assert sum(source.values()) < LITTLE, source


def test_pods_start_while_a_node_is_drained(cache: TwoNodeCache) -> None:
    drained, other = cache.nodes
    kubectl = cache.site.cluster.kubectl
    with cache.counted() as source:
        holders = f"--pod-selector=podferry.io/cache={cache.name}"
        options = ("--delete-emptydir-data", holders, "--timeout=300s")
        kubectl("drain", drained, *options, timeout=300)
        try:
            assert nodes_of(train(cache, "drained", 2)) == [other] * 2
        finally:
            kubectl("uncordon", drained)
        cache.warm()
    assert sorted(cache.holders()) == sorted(cache.nodes)
    assert sum(source.values()) < LITTLE, source


def test_others_are_refused_and_take_the_source(cache: TwoNodeCache, uri: str) -> None:
    with cache.site.namespace() as outside:
        tokens = [
            {"serviceAccountToken": {"audience": audience, "path": path}}
            for path, audience in (("other", "somebody"), ("right", "podferry-cache"))
        ]
        words = [f"http://{cache.address}:8091", uri, cache.proxy.endpoint]
        main = container(
            command=["python3", "-c", ASK, *words],
            image=IMAGE,
            envFrom=[{"secretRef": {"name": STORE_SECRET}}],
            env=[{"name": "HOME", "value": "/tmp"}],
            volumeMounts=[{"name": "tokens", "mountPath": "/tokens"}],
        )
        ask = pod("ask", main, volumes=[{"name": "tokens", "projected": {"sources": tokens}}])
        with cache.counted() as source:
            outcome = outside.run(ask, 120)
        assert outcome.succeeded, outcome
        log = outcome["trainer"].log
        assert log.splitlines()[:3] == ["none 401", "other 401", "right 403"]
        assert "the cache is not used" in log, log
        [address] = source
        assert outside.pods(ask)[0]["status"]["podIP"] == address
        assert source[address] >= BYTES
        probe = pod("probe", container(script=TRAIN), annotations=cache.annotations(uri))
        assert "--dataset-cache" not in outside.try_create(probe).output


def test_pods_start_without_the_source(cache: TwoNodeCache, uri: str) -> None:
    cache.warm()
    cache.proxy.stop()
    train(cache, "frozen", 2)
    listed = pod("listed", container(script=TRAIN), annotations=cache.annotations(uri))
    outcome = cache.readers.run(listed, 240)
    assert outcome.succeeded, outcome
    assert "the list of the cache is used" in outcome["podferry"].log

"""A cluster survives being killed at any moment, and leaves nothing on its host."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest

from tests.cluster import build, packages, traces
from tests.cluster.cluster import Cluster
from tests.cluster.helpers import command_line, container, init_of, pod
from tests.cluster.image import base
from tests.cluster.layout import NODE, Layout
from tests.cluster.node import Node
from tests.cluster.process import ProcessId, owned, patient, wait_until

# Fixtures do not count: the first run builds Kubernetes and the base image, in minutes.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(patient(240), func_only=True)]


@pytest.fixture(scope="module", autouse=True)
def _built() -> None:
    """What takes minutes once is there before the first test begins."""
    packages.ensure(packages.NODE_NEEDS | packages.IMAGE_NEEDS)
    cache = Layout.of().cache
    build.kubernetes(cache)
    base(cache)


@pytest.fixture
def doomed() -> Iterator[Layout]:
    """The layout of a cluster that a test may treat badly."""
    layout = Layout.of(name="doomed")
    Node(layout).down()
    yield layout
    Node(layout).down()


def test_down_leaves_nothing(doomed: Layout) -> None:
    before = traces.of_host()
    cluster = Cluster(Node(doomed)).up()
    cluster.load_base_image()
    volume = {"name": "stage", "emptyDir": {"medium": "Memory"}}
    mount = {"volumeMounts": [{"name": "stage", "mountPath": "/stage"}]}
    cluster.apply(pod("running", container("main", "sleep", "600", **mount), volumes=[volume]))
    cluster.wait("pod/running", "condition=Ready")
    namespace = traces.network_namespace(init_of(doomed).pid)
    assert namespace
    assert len(traces.users_of_network(namespace)) > 5
    cluster.down()
    assert traces.of_cluster(doomed) == []
    assert traces.users_of_network(namespace) == []
    assert traces.of_host() - before == set()


@pytest.mark.parametrize("moment", ["init.json", "apiserver/apiserver.crt", "started"])
def test_down_cleans_up_after_an_up_that_was_killed(doomed: Layout, moment: str) -> None:
    before = traces.of_host()
    _kill_up_at(doomed, moment)
    assert owned(str(doomed.state))
    assert command_line(doomed, "down").wait(60) == 0
    assert traces.of_cluster(doomed) == []
    assert traces.of_host() - before == set()


def test_up_works_after_an_up_that_was_killed(doomed: Layout) -> None:
    _kill_up_at(doomed, "init.json")
    assert command_line(doomed, "up").wait(180) == 0
    assert Cluster(Node(doomed)).get("node", NODE)


def _kill_up_at(layout: Layout, moment: str) -> None:
    Node(layout).down()
    starting = command_line(layout, "up")
    wait_until(f"{moment} to be written", (layout.state / moment).exists, 900, interval=0.005)
    starting.kill()
    starting.wait()


def test_a_process_whose_record_was_never_written_is_found(doomed: Layout) -> None:
    _kill_up_at(doomed, "started")
    init = init_of(doomed)
    doomed.init_record.unlink()
    Node(doomed).down()
    assert not init.alive
    assert traces.of_cluster(doomed) == []


def test_a_foreign_process_with_a_recorded_pid_is_spared(doomed: Layout) -> None:
    stranger = subprocess.Popen(["sleep", "60"])
    try:
        identity = ProcessId.of(stranger.pid)
        assert identity
        doomed.state.mkdir(parents=True)
        ProcessId(identity.pid, identity.started - 1, identity.boot).save(doomed.init_record)
        Node(doomed).down()
        assert stranger.poll() is None
        assert not doomed.state.exists()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_cluster_that_lost_a_part_is_replaced(doomed: Layout) -> None:
    cluster = Cluster(Node(doomed)).up()
    init = init_of(doomed)
    [etcd] = [process for process in owned(str(doomed.state)) if process.program == "etcd"]
    etcd.kill()
    wait_until("the cluster to end with its part", lambda: not init.alive, 20)
    assert "etcd ended with -9" in doomed.failure.read_text()
    cluster.up()
    assert init_of(doomed) != init
    assert cluster.get("node", NODE)

"""Pods train from a JuiceFS volume behind a claim, copied, mounted and by a cache, and commit to it.

JuiceFS is mounted by hand on the node, behind a hostPath volume: its CSI driver is an image of a registry.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.node import Node
from tests.cluster.process import run
from tests.e2e.claims import CLAIM, claim, volume
from tests.e2e.manifests import container, job, pod, podferry_annotations
from tests.e2e.namespace import Namespace
from tests.e2e.site import Site
from tests.e2e.test_cache import FILES, TRAIN, bindings, create, reported, wait_for_webhook
from tests.support.juicefs import format_volume, mounted

__all__ = ["bindings"]
SOURCE = f"pvc://{CLAIM}/set"
CHECKPOINT = (
    TRAIN
    + """
assert os.stat(data).st_dev != os.stat("/").st_dev
checkpoints = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
(checkpoints / "last.tmp").mkdir()
(checkpoints / "last.tmp/weights").write_bytes(b"weights" * 100_000)
(checkpoints / "last.tmp").rename(checkpoints / "last")
"""
)
MOUNTED = (
    TRAIN
    + """
[mount] = [line.split() for line in open("/proc/self/mountinfo") if line.split()[4] == str(data)]
assert "fuse.juicefs" in mount and "ro" in mount[5].split(","), mount
"""
)

OWN_PROC = 'mount --make-private /proc && mount -t proc proc /proc && exec "$@"'
WITH_OWN_PROC = ("unshare", "--mount", "--propagation", "unchanged", "sh", "-c", OWN_PROC, "sh")
"""JuiceFS reads /proc/self, and its process has no number in the node's process namespace. What it mounts
elsewhere is seen on the node."""


@pytest.fixture
def juicefs(site: Site, tmp_path: Path) -> Iterator[Path]:
    """The volume's mount point on the node, as this process reaches it, with the set."""
    node = site.cluster.backend
    if not isinstance(node, Node):
        pytest.skip("the nodes of this cluster are not the harness's to mount on")
    on_node = ("nsenter", f"--mount={node.network_namespace.with_name('mnt')}", "--")
    with mounted(tmp_path, format_volume(tmp_path), (*on_node, *WITH_OWN_PROC)) as point:
        for name, data in FILES.items():
            (point / "set" / name).parent.mkdir(parents=True, exist_ok=True)
            (point / "set" / name).write_bytes(data)
        yield point


@pytest.fixture
def team(site: Site, juicefs: Path, tmp_path: Path) -> Iterator[Namespace]:
    """A namespace with a claim of the volume."""
    with site.namespace() as namespace:
        name = f"juicefs-{namespace.name}"
        one = volume(name)
        one["spec"]["hostPath"] = {"path": str(tmp_path / juicefs.name), "type": "Directory"}
        namespace.start(one, claim(name))
        try:
            yield namespace
        finally:  # a pod's mount outlives a volume that ends first
            namespace.kubectl("delete", "pods,jobs", "--all", "--wait")
            site.cluster.kubectl("delete", "pv", name, "--wait=false")


def test_a_pod_copies_a_set_and_commits_and_another_one_mounts_it(team: Namespace, juicefs: Path) -> None:
    copying = podferry_annotations(
        dataset=SOURCE,
        dataset_size="32Mi",
        checkpoints=f"pvc://{CLAIM}/checkpoints",
        checkpoint_size="8Mi",
    )
    outcome = team.run(job("train", container(script=CHECKPOINT), annotations=copying), 120)
    assert outcome.succeeded, outcome
    words = ["checkpoints", "verify", f"file://{juicefs}/checkpoints", team.lineage("train")]
    found = json.loads(run([sys.executable, "-m", "podferry.cli.main", *words, "-o", "json"]))
    assert [one["state"] for one in found] == ["intact"]

    sharing = podferry_annotations(dataset=SOURCE, mode="share")
    outcome = team.run(job("share", container(script=MOUNTED), annotations=sharing), 120)
    assert outcome.succeeded, outcome


def test_a_cache_holds_what_is_behind_a_claim(site: Site, team: Namespace) -> None:
    address = create(team, SOURCE, "--size", "32Mi")
    annotations = podferry_annotations(dataset="digits", dataset_size="32Mi")
    wait_for_webhook(team, pod("probe", container(script=TRAIN), annotations=annotations), address)
    outcome = team.run(job("train", container(script=TRAIN), annotations=annotations), 120)
    assert outcome.succeeded, outcome
    [report] = reported(site, team)
    status = report["holders"][0]["status"]
    total = sum(map(len, FILES.values()))
    assert status["datasets"][0]["bytes_done"] == status["served_bytes"] == total

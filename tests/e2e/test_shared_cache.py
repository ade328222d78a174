"""Pods read a dataset where a cache's holder keeps it: the mounts of an administrator, and no copy."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cluster.node import Node
from tests.cluster.process import patient
from tests.e2e.install import OVERLAY, ROOT
from tests.e2e.manifests import UNPRIVILEGED, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import RESTRICTED, Site
from tests.e2e.test_cache import DIGESTS, FILES, SERVICE, bindings, cache_verb, create, frozen_dataset

__all__ = ["bindings"]
MOUNTS = """set -e
mkdir -p /var/lib/podferry/stage /var/lib/podferry/read
mount -t tmpfs -o size=256m,uid=65532,gid=65532,mode=0755,nosuid,nodev podferry /var/lib/podferry/stage
mount --bind /var/lib/podferry/stage /var/lib/podferry/read
mount -o remount,bind,ro /var/lib/podferry/read
"""
SMALLER = {
    "target": {"kind": "DaemonSet"},
    "patch": '[{"op": "replace", "path": "/spec/template/spec/containers/0/env/0/value", "value": "256m"}]',
}
UNMOUNTS = "umount -l /var/lib/podferry/read /var/lib/podferry/stage"
CHECK = f"""
import errno, fcntl, hashlib, os, pathlib
data = pathlib.Path(os.environ["PODFERRY_DATASET"])
found = {{str(file.relative_to(data)): hashlib.sha256(file.read_bytes()).hexdigest()
          for file in data.rglob("*") if file.is_file()}}
assert found == {DIGESTS!r}, found
[mount] = [line.split() for line in open("/proc/self/mountinfo") if line.split()[4] == str(data)]
assert "tmpfs" in mount and "ro" in mount[5].split(","), mount
"""
SEES = """
import os, pathlib
assert pathlib.Path(os.environ["PODFERRY_DATASET"], "d0/new.bin").read_text() == "{text}"
"""
ATTACK = f"""
{CHECK}
name = sorted(found)[0]
attacks = dict(
    write=lambda: (data / name).open("r+b"), create=lambda: (data / "new").touch(),
    unlink=lambda: (data / name).unlink(), truncate=lambda: os.truncate(data / name, 0),
    rename=lambda: (data / name).rename(data / "other"), mode=lambda: (data / name).chmod(0o777))
others = set() if os.getuid() in (0, 65532) else {{errno.EACCES, errno.EPERM}}
for attack, attempt in attacks.items():
    try:
        attempt()
    except OSError as error:
        assert error.errno in {{errno.EROFS, *others}}, (attack, error)
    else:
        raise AssertionError(attack)
fcntl.flock(os.open(data / name, os.O_RDONLY), fcntl.LOCK_EX)
fcntl.flock(os.open(data, os.O_RDONLY), fcntl.LOCK_EX)
print("refused")
"""
HOLD = f"""
import time
{ATTACK}
print("reading", flush=True)
while not os.path.exists("/tmp/end"):
    assert (data / name).stat().st_size == 200_000
    time.sleep(0.1)
{CHECK}
"""


@pytest.fixture
def on_node(site: Site) -> Iterator[Callable[[str], None]]:
    """Runs a script of the administrator's on the node, which has the label; without mounts afterwards."""
    node = site.cluster.backend
    if not isinstance(node, Node):
        pytest.skip("the nodes of this cluster are not the harness's to mount on")
    inside = ["nsenter", f"--mount={node.network_namespace.with_name('mnt')}", "--", "sh", "-c"]
    site.cluster.kubectl("label", "nodes", "--all", "--overwrite", "podferry.io/cache=true")
    yield lambda script: subprocess.run([*inside, script], check=True) and None
    site.cluster.kubectl("label", "nodes", "--all", "podferry.io/cache-")
    site.cluster.kubectl("delete", "persistentvolumes", "-l", "podferry.io/cache=digits", "--wait=false")
    subprocess.run([*inside, UNMOUNTS], check=False)  # a cluster that has ended has none


@pytest.fixture
def mounts(on_node: Callable[[str], None]) -> None:
    """A tmpfs and a read-only view of it, by the commands of the documentation."""
    on_node(MOUNTS)


@pytest.fixture
def installed_mounts(site: Site, on_node: Callable[[str], None], tmp_path: Path) -> Iterator[None]:
    """The same by `deploy/cache-mounts`, whose pods start twice, as on a node that starts again."""
    (tmp_path / "mounts").symlink_to(ROOT / "deploy" / "cache-mounts")
    images = yaml.safe_load((OVERLAY / "kustomization.yaml").read_text())["images"]
    text = yaml.safe_dump({"resources": ["mounts"], "images": images, "patches": [SMALLER]})
    (tmp_path / "kustomization.yaml").write_text(text)
    kubectl, name = site.cluster.kubectl, "podferry-cache-mounts"
    kubectl("apply", "-k", str(tmp_path))
    for _ in range(2):
        kubectl("-n", name, "rollout", "restart", f"daemonset/{name}")
        kubectl("-n", name, "rollout", "status", f"daemonset/{name}", f"--timeout={patient(60):.0f}s")
    yield
    kubectl("delete", "-k", str(tmp_path))


def wait_until_shared(namespace: Namespace, source: str, **user: Any) -> None:
    """Wait until the webhook knows the bound claim."""
    annotations = namespace.store_annotations(dataset=source)
    probe = pod("probe", container(script=CHECK, **user), annotations=annotations)

    def knows() -> bool:
        return "--shared-dir=/podferry/shared" in namespace.try_create(probe).output

    namespace.until("the webhook to know the claim", knows, 60)


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize("user", [1000, 65532])
def test_pods_read_in_place_and_can_change_nothing(site: Site, user: int) -> None:
    with site.namespace(RESTRICTED) as namespace:
        source = frozen_dataset(site, namespace)
        create(namespace, source, "--shared", "/var/lib/podferry")
        unprivileged = {"securityContext": {**UNPRIVILEGED, "runAsUser": user}}
        wait_until_shared(namespace, source, **unprivileged)
        annotations = namespace.store_annotations(dataset=source)
        hold = pod("hold", container(script=HOLD, **unprivileged), annotations=annotations)
        namespace.start(hold)
        namespace.until_logged(hold, "trainer", "reading", timeout=60)
        namespace.kubectl("delete", f"pod/{SERVICE}-0")
        train = job("train", container(script=CHECK, **unprivileged), annotations=annotations)
        outcome = namespace.run(train, 120)
        assert outcome.succeeded, outcome
        namespace.kubectl("exec", "hold", "-c", "trainer", "--", "touch", "/tmp/end")
        assert namespace.outcome(hold).succeeded
        log = namespace.kubectl("logs", f"{SERVICE}-0")
        assert "complete dataset adopted" in log, log


@pytest.mark.usefixtures("mounts")
def test_a_pod_that_runs_keeps_its_version(site: Site, namespace: Namespace) -> None:
    name = f"shared-{namespace.name}"
    source = site.upload_dataset(name, FILES)
    create(namespace, source, "--shared", "/var/lib/podferry", "--size", "32Mi")
    wait_until_shared(namespace, source)
    annotations = namespace.store_annotations(dataset=source)
    hold = pod("hold", container(script=HOLD), annotations=annotations)
    namespace.start(hold)
    namespace.until_logged(hold, "trainer", "reading", timeout=60)
    for number in range(2):
        site.upload_dataset(name, {"d0/new.bin": b"%d" % number})
        assert "1 holder with" in cache_verb(site, namespace, "warmup", "--timeout", "60")
        train = job(f"train-{number}", container(script=SEES.format(text=number)), annotations=annotations)
        outcome = namespace.run(train, 120)
        assert outcome.succeeded, outcome
    namespace.kubectl("exec", "hold", "-c", "trainer", "--", "touch", "/tmp/end")
    assert namespace.outcome(hold).succeeded


@pytest.mark.usefixtures("installed_mounts")
def test_root_can_change_nothing(site: Site) -> None:
    with site.namespace() as namespace:
        source = frozen_dataset(site, namespace)
        create(namespace, source, "--shared", "/var/lib/podferry")
        wait_until_shared(namespace, source)
        attack = pod(
            "attack", container(script=ATTACK), annotations=namespace.store_annotations(dataset=source)
        )
        outcome = namespace.run(attack, 120)
        assert outcome.succeeded, outcome
        assert outcome["trainer"].log == "refused\n"


@pytest.mark.usefixtures("mounts")
def test_another_source_takes_nothing_from_pods_and_is_given_to_none(
    site: Site, namespace: Namespace
) -> None:
    source = site.upload_dataset(f"shared-{namespace.name}", FILES)
    other = site.upload_dataset(f"other-{namespace.name}", {"d0/secret.txt": b"of another team"})
    shared = ("--shared", "/var/lib/podferry", "--size", "32Mi")
    create(namespace, source, *shared)
    wait_until_shared(namespace, source)
    annotations = namespace.store_annotations(dataset=source)
    hold = pod("hold", container(script=HOLD), annotations=annotations)
    namespace.start(hold)
    namespace.until_logged(hold, "trainer", "reading", timeout=60)
    gates = [{"name": "example.org/queue"}]
    late = pod("late", container(script=CHECK), annotations=annotations, schedulingGates=gates)
    namespace.start(late)
    create(namespace, other, *shared)  # by kubectl: `create --apply` refuses it
    assert "1 holder with 15 B" in cache_verb(site, namespace, "warmup", "--timeout", "60")
    admit = '[{"op": "remove", "path": "/spec/schedulingGates"}]'
    namespace.kubectl("patch", "pod/late", "--type=json", "-p", admit)
    outcome = namespace.outcome(late)
    assert not outcome.succeeded
    assert "the cache shares another dataset by now" in str(outcome)
    namespace.kubectl("exec", "hold", "-c", "trainer", "--", "touch", "/tmp/end")
    assert namespace.outcome(hold).succeeded

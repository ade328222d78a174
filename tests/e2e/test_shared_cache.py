"""Pods read a dataset where a cache's holder keeps it: the mounts of an administrator, and no copy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cluster.node import Node
from tests.e2e.manifests import UNPRIVILEGED, container, job, pod
from tests.e2e.namespace import Namespace
from tests.e2e.site import RESTRICTED, Site
from tests.e2e.test_cache import DIGESTS, SERVICE, bindings, create, frozen_dataset

__all__ = ["bindings"]
MOUNTS = """set -e
mkdir -p /var/lib/podferry/stage /var/lib/podferry/read
mount -t tmpfs -o size=256m,uid=65532,gid=65532,mode=0755,nosuid,nodev podferry /var/lib/podferry/stage
mount --bind /var/lib/podferry/stage /var/lib/podferry/read
mount -o remount,bind,ro /var/lib/podferry/read
"""
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


@pytest.fixture(autouse=True)
def mounts(site: Site) -> Iterator[None]:
    """The administrator's step: a tmpfs and a read-only view of it on the node, and the node's label."""
    node = site.cluster.backend
    if not isinstance(node, Node):
        pytest.skip("the nodes of this cluster are not the harness's to mount on")
    inside = ["nsenter", f"--mount={node.network_namespace.with_name('mnt')}", "--", "sh", "-c"]
    subprocess.run([*inside, MOUNTS], check=True)
    site.cluster.kubectl("label", "nodes", "--all", "--overwrite", "podferry.io/cache=true")
    yield
    site.cluster.kubectl("label", "nodes", "--all", "podferry.io/cache-")
    site.cluster.kubectl("delete", "persistentvolumes", "-l", "podferry.io/cache=digits", "--wait=false")
    subprocess.run([*inside, UNMOUNTS], check=False)  # a cluster that has ended has none


def wait_until_shared(namespace: Namespace, source: str, **user: Any) -> None:
    """Wait until the webhook knows the bound claim."""
    annotations = namespace.store_annotations(dataset=source)
    probe = pod("probe", container(script=CHECK, **user), annotations=annotations)

    def knows() -> bool:
        return "--shared-dir=/podferry/shared" in namespace.try_create(probe).output

    namespace.until("the webhook to know the claim", knows, 60)


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

"""What a cluster could leave on its host: tests compare before its start and after its end."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.layout import Layout
from tests.cluster.process import owned

# Directories that Kubernetes and containerd are known to write to, whatever their options say.
_SHARED = (
    "/etc/cni",
    "/etc/kubernetes",
    "/opt/cni",
    "/opt/containerd",
    "/run/containerd",
    "/run/netns",
    "/usr/libexec/kubernetes",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/log/containers",
    "/var/log/pods",
)

# Distinguishes mounts and devices of Kubernetes from those that change for other reasons.
_WORDS = ("podferry", "kube", "k8s", "containerd", "cni", "nsfs")
_DEVICES = ("cni0", "kube-ipvs0", "kube-dummy-if")


def of_cluster(layout: Layout) -> list[str]:
    """What exists of this cluster: processes, control groups, mounts, files."""
    state = str(layout.state)
    processes = [f"process {process.pid}" for process in owned(state)]
    groups = [f"control group {path}" for path in cgroups.directories(layout.cgroup)]
    mounts = [f"mount {line}" for line in _mounts() if state in line or layout.cgroup in line]
    files = [f"file {path}" for path in (layout.state,) if path.exists()]
    return processes + groups + mounts + files


def of_host() -> set[str]:
    """What any cluster might change outside of its own directory: mounts, network devices, directories."""
    found = {f"mount {line}" for line in _mounts() if any(word in line for word in _WORDS)}
    found |= {f"network device {name}" for _, name in socket.if_nameindex() if name in _DEVICES}
    for shared in _SHARED:
        found |= {f"file {path}" for path in Path(shared).glob("**/*")}
        if Path(shared).exists():
            found.add(f"file {shared}")
    return found


def network_namespace(pid: int | str) -> int | None:
    """The inode that names a process's network namespace, or None if it has ended meanwhile."""
    try:
        return Path(f"/proc/{pid}/ns/net").stat().st_ino
    except OSError:
        return None


def users_of_network(namespace: int) -> list[str]:
    """The processes that are in a network namespace."""
    numbers = [entry.name for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [f"process {pid}" for pid in numbers if network_namespace(pid) == namespace]


def _mounts() -> list[str]:
    return Path("/proc/self/mounts").read_text().splitlines()

"""What a node sees of its own: mounts and network. The first node's are those of the supervisor.

    node-1 cni0 10.244.0.1/20 --- node-2 ====== node-1 --- cni0 10.244.16.1/20 node-2
              pods                     veth, by name of the other end      pods

Further nodes reach each other by way of the first.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.cluster.layout import COVERED, PODS, Member
from tests.cluster.process import ProcessId, run, wait_until

HOLDS = "sleep"
"""The program whose process holds a further node's namespaces; it ends with the supervisor."""


def own_mounts() -> None:
    """Mounts of the host appear here; none from here appears there. Below, kubelet and runtime share."""
    run(["mount", "--make-rslave", "/"])
    run(["mount", "--make-rshared", "/"])
    run(["mount", "-t", "proc", "proc", "/proc"])
    _cover(())


def _cover(inside: Sequence[str]) -> None:
    for directory in COVERED:
        run([*inside, "mount", "-t", "tmpfs", "-o", "mode=755", "podferry", directory])
    run([*inside, "mkdir", "/run/lock"])


def own_network(node: Member, inside: Sequence[str] = ()) -> None:
    """A bridge for the node's pods.

    Args:
        node: Whose network it is.
        inside: The prefix that runs a command there.
    """
    prefix = node.pods.rpartition("/")[2]
    for words in (
        "link set lo up",
        # With an address of its own. A port's would change with that port's pod, and the other pods would not
        # reach the node until they ask for the address again.
        f"link add cni0 address {node.bridge} type bridge",
        f"address add {node.gateway}/{prefix} dev cni0",
        "link set cni0 up",
        f"route add default via {node.gateway} dev cni0",  # the parts choose their address by it
    ):
        run([*inside, "ip", *words.split()])
    # Traffic between pods on the bridge must pass the rules that undo a Service's address.
    for setting in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
        path = f"/proc/sys/net/{setting}"
        if Path(path).exists():
            run([*inside, "sh", "-c", f"echo 1 > {path}"])


def further_node(node: Member, first: Member) -> list[str]:
    """Make the namespaces of another node, linked to the first, whose namespaces are this process's.

    Returns:
        The prefix that runs a command in them.
    """
    command = ["unshare", "--net", "--mount", "--propagation=private", "--", HOLDS, "infinity"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    process.returncode = 0  # the supervisor collects it; the object must not
    wait_until(f"the namespaces of {node.name}", lambda: _holds(process.pid), 20, interval=0.01)
    inside = ["nsenter", f"--target={process.pid}", "--net", "--mount", "--"]
    run([*inside, "mount", "--make-rshared", "/"])
    _cover(inside)
    own_network(node, inside)
    _link(node, first, process.pid, inside)
    return inside


def _holds(pid: int) -> bool:
    found = ProcessId.of(pid)
    return found is not None and found.program == HOLDS


def _link(node: Member, first: Member, pid: int, inside: Sequence[str]) -> None:
    """Both ends have no address of their own: each node's is that of its bridge."""
    run(f"ip link add {node.name} type veth peer name {first.name} netns {pid}".split())
    run(f"ip link set {node.name} up".split())
    run([*inside, *f"ip link set {first.name} up".split()])
    run(f"ip route add {node.pods} via {node.gateway} dev {node.name} onlink src {first.gateway}".split())
    back = f"ip route add {PODS} via {first.gateway} dev {first.name} onlink src {node.gateway}"
    run([*inside, *back.split()])

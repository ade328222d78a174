"""The files that the parts of a node read, as text. JSON is YAML, so nothing here needs templates."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.files import write_atomically
from tests.cluster.layout import API_PORT, GATEWAY, PAUSE_IMAGE, Layout, Member, on_overlay

CNI_PLUGINS = "/usr/lib/cni"  # where Debian has them

# Who talks to the API server, nodes apart: the kubeconfig's name, the user, the groups.
_USERS = {
    "admin": ("admin", "system:masters"),
    "controller-manager": ("system:kube-controller-manager", "system:masters"),
    "scheduler": ("system:kube-scheduler", ""),
    "proxy": ("system:kube-proxy", "system:node-proxier"),
}


def users(layout: Layout) -> dict[str, tuple[str, str]]:
    """Who talks to the API server: the user and the groups, by the kubeconfig's name."""
    nodes = (node.name for node in layout.members)
    return _USERS | {name: (f"system:node:{name}", "system:nodes") for name in nodes}


def write_all(layout: Layout) -> None:
    """Write every file of a new cluster, with tokens of its own."""
    tokens = {name: secrets.token_hex(16) for name in users(layout)}
    for name, token in tokens.items():
        write_atomically(layout.state / f"{name}.kubeconfig", kubeconfig(layout.api_certificate, token))
    write_atomically(layout.state / "tokens.csv", token_file(tokens, users(layout)))
    for node in layout.members:
        _write_node(node)


def _write_node(node: Member) -> None:
    (node.state / "cni").mkdir(parents=True)
    # No name server runs: pods find Services by environment variables and addresses.
    write_atomically(node.state / "resolv.conf", "options timeout:1 attempts:1\n")
    write_atomically(node.state / "containerd.toml", containerd(node))
    write_kubelet(node, {})
    write_atomically(node.state / "cni" / "10-pods.conflist", json.dumps(network(node), indent=1))


def write_kubelet(node: Member, settings: Mapping[str, object]) -> None:
    """Write what the kubelet reads when it starts, some settings changed."""
    write_atomically(node.kubelet_config, json.dumps({**kubelet(node), **settings}, indent=1))


def token_file(tokens: Mapping[str, str], users: Mapping[str, tuple[str, str]]) -> str:
    """The API server's `--token-auth-file`: token, user, uid, groups."""
    return "".join(f'{token},{users[name][0]},{name},"{users[name][1]}"\n' for name, token in tokens.items())


def kubeconfig(authority: Path, token: str) -> str:
    """A kubeconfig for the API server at the gateway; it works inside the network namespace only."""
    cluster = {"server": f"https://{GATEWAY}:{API_PORT}", "certificate-authority": str(authority)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "podferry", "cluster": cluster}],
        "users": [{"name": "user", "user": {"token": token}}],
        "contexts": [{"name": "podferry", "context": {"cluster": "podferry", "user": "user"}}],
        "current-context": "podferry",
    }
    return json.dumps(config, indent=1) + "\n"


def containerd(node: Member) -> str:
    """containerd's configuration (version 2, which 1.4 to 2.x read)."""
    state = node.state
    # runc dies if it may not lower a container's oom_score_adj (no CAP_SYS_RESOURCE), unless
    # restrict_oom_score_adj is set; elsewhere the option changes nothing.
    return f"""\
version = 2
root = {_toml(state / "containerd" / "root")}
state = {_toml(state / "containerd" / "state")}
[grpc]
  address = {_toml(node.containerd_socket)}
[plugins."io.containerd.internal.v1.opt"]
  path = {_toml(state / "containerd" / "opt")}
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = {_toml(PAUSE_IMAGE)}
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = {_toml("native" if on_overlay(state) else "overlayfs")}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = {_toml(CNI_PLUGINS)}
    conf_dir = {_toml(state / "cni")}
"""


def _toml(value: object) -> str:
    return json.dumps(str(value))  # a JSON string is a TOML basic string


def network(node: Member) -> dict[str, object]:
    """The pods' network: one bridge, addresses handed out from files."""
    addresses = {
        "type": "host-local",
        "dataDir": str(node.state / "ipam"),
        "ranges": [[{"subnet": node.pods, "gateway": node.gateway}]],
        "routes": [{"dst": "0.0.0.0/0"}],
    }
    bridge = {"type": "bridge", "bridge": "cni0", "isGateway": True, "hairpinMode": True, "ipam": addresses}
    ports = {"type": "portmap", "capabilities": {"portMappings": True}}
    return {"cniVersion": "1.0.0", "name": "pods", "plugins": [bridge, ports]}


def kubelet(node: Member) -> dict[str, object]:
    """The kubelet's configuration (kubelet.config.k8s.io/v1beta1)."""
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        # Two kubelets that share a cgroup root, or a log directory, end each other's pods.
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{node.cgroup}",
        "podLogsDir": str(node.state / "pods"),
        "volumePluginDir": str(node.state / "volume-plugins"),
        "containerRuntimeEndpoint": f"unix://{node.containerd_socket}",
        # The API server reaches logs and exec without a certificate: nothing else is in the namespace.
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "failSwapOn": False,
        "failCgroupV1": False,
        "clusterDNS": [node.gateway],
        "clusterDomain": "cluster.local",
        "resolvConf": str(node.state / "resolv.conf"),
        # The disk is the host's, and images cannot be pulled again: never collect them.
        "imageGCHighThresholdPercent": 100,
        "imageGCLowThresholdPercent": 99,
        "evictionHard": {"memory.available": "200Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
    }

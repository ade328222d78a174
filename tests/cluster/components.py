"""The command lines of the parts of a node, in the order in which they start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.layout import API_PORT, GATEWAY, NODE, PODS, SERVICES, Layout, Member

API_SERVER = "kube-apiserver"
KUBELET = "kubelet"


@dataclass(frozen=True)
class Component:
    """One long-running part.

    Attributes:
        program: Its name.
        command: What runs it.
        node: Where it runs.
    """

    program: str
    command: Sequence[str]
    node: str = NODE

    @property
    def name(self) -> str:
        """Also names its log."""
        return self.program if self.node == NODE else f"{self.program}-{self.node}"


def control_plane(layout: Layout, binaries: Path) -> list[Component]:
    """What must run before the others can: the store, the API server, each node's container runtime."""
    state = layout.state
    return [
        _component(binaries / "etcd", data_dir=state / "etcd", unsafe_no_fsync=True, log_level="warn"),
        _component(
            binaries / API_SERVER,
            etcd_servers="http://127.0.0.1:2379",
            cert_dir=layout.api_certificate.parent,
            secure_port=API_PORT,
            bind_address="0.0.0.0",  # in a namespace that nothing else can reach
            advertise_address=GATEWAY,
            token_auth_file=state / "tokens.csv",
            authorization_mode="Node,RBAC",
            service_account_issuer="https://kubernetes.default.svc",
            service_account_key_file=state / "service-accounts.key",
            service_account_signing_key_file=state / "service-accounts.key",
            service_cluster_ip_range=SERVICES,
            # Webhooks are reached at their pods at once, not when kube-proxy has caught up.
            enable_aggregator_routing=True,
            allow_privileged=True,
            kubelet_preferred_address_types="InternalIP",
        ),
        *map(_containerd, layout.members),
    ]


def _containerd(node: Member) -> Component:
    return Component("containerd", ("containerd", "--config", str(node.state / "containerd.toml")), node.name)


def node_parts(layout: Layout, binaries: Path) -> list[Component]:
    """What needs an API server that answers."""
    state = layout.state
    return [
        _component(
            binaries / "kube-controller-manager",
            **_authenticated(state / "controller-manager.kubeconfig"),
            service_account_private_key_file=state / "service-accounts.key",
            root_ca_file=layout.api_certificate,
            cert_dir=state / "controller-manager",
            flex_volume_plugin_dir=state / "volume-plugins",
            leader_elect=False,
        ),
        _component(
            binaries / "kube-scheduler",
            **_authenticated(state / "scheduler.kubeconfig"),
            cert_dir=state / "scheduler",
            leader_elect=False,
        ),
        *(part for node in layout.members for part in _parts_of(node, layout, binaries)),
    ]


def _parts_of(node: Member, layout: Layout, binaries: Path) -> list[Component]:
    return [
        _component(
            binaries / "kube-proxy",
            node.name,
            kubeconfig=layout.state / "proxy.kubeconfig",
            proxy_mode="nftables",
            hostname_override=node.name,
            cluster_cidr=PODS,
            # The host's connection tracking is the host's to set: 0 leaves it alone.
            conntrack_max_per_core=0,
            conntrack_tcp_timeout_established="0s",
            conntrack_tcp_timeout_close_wait="0s",
        ),
        _component(
            binaries / KUBELET,
            node.name,
            config=node.kubelet_config,
            kubeconfig=layout.state / f"{node.name}.kubeconfig",
            hostname_override=node.name,
            node_ip=node.gateway,
            root_dir=node.state / "kubelet",
            cert_dir=node.state / "kubelet" / "pki",
        ),
    ]


def _authenticated(kubeconfig: Path) -> dict[str, Path]:
    uses = ("kubeconfig", "authentication_kubeconfig", "authorization_kubeconfig")
    return dict.fromkeys(uses, kubeconfig)


def _component(binary: Path, node: str = NODE, **options: str | int | bool | Path) -> Component:
    words = [str(binary)]
    for name, value in options.items():
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        words.append(f"--{name.replace('_', '-')}={shown}")
    return Component(binary.name, tuple(words), node)

"""kind: the backend of `Cluster` if a Docker engine responds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from tests.cluster.files import locked, say
from tests.cluster.image import Recipe
from tests.cluster.layout import BASE_IMAGE, Layout
from tests.cluster.process import ClusterError, answers, run

KIND = "v0.30.0"  # its node image is of Kubernetes 1.34
_BASE = "python:3.11-slim-bookworm"


def docker_answers() -> bool:
    """Whether this user can use a Docker engine."""
    return bool(shutil.which("docker")) and answers(["docker", "info"])


class Kind:
    """A kind cluster of one node."""

    owner: Mapping[str, str] = {}
    inside: Sequence[str] = ()
    network_namespace = None

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.kubeconfig = layout.kubeconfig

    def up(self) -> None:
        """Ensure a cluster that responds: reuse the running one, or create a new one."""
        with locked(self._layout.lock):
            if self._works():
                return
            self._delete()
            self._layout.state.mkdir(parents=True, exist_ok=True)
            say("creating a kind cluster")
            options = ["--name", self._layout.name, "--kubeconfig", str(self.kubeconfig), "--wait", "180s"]
            run([self._kind, "create", "cluster", *options], timeout=900)

    def down(self) -> None:
        """Delete the cluster."""
        with locked(self._layout.lock):
            self._delete()

    @property
    def kubectl(self) -> Sequence[str]:
        """The prefix of every kubectl call."""
        kubectl = shutil.which("kubectl")
        if not kubectl:
            raise ClusterError("kubectl is not on PATH: install it")
        return (kubectl, "--kubeconfig", os.fspath(self.kubeconfig))

    @cached_property
    def host_address(self) -> str:
        """The host's address in kind's Docker network, as pods see it."""
        form = "{{range .IPAM.Config}}{{.Gateway}} {{end}}"
        gateways = run(["docker", "network", "inspect", "kind", "--format", form]).split()
        for gateway in gateways:
            if ":" not in gateway:
                return gateway
        raise ClusterError(f"kind's Docker network has no IPv4 gateway (found: {gateways})")

    def build_image(self, recipe: Recipe) -> None:
        """Build an image with Docker and load it."""
        run(["docker", "build", *recipe.words(_BASE)], timeout=1800)
        self._load(recipe.tag)

    def load_base_image(self) -> None:
        """Load Python's own slim image under the base image's name."""
        run(["docker", "pull", "--quiet", _BASE], timeout=600)
        run(["docker", "tag", _BASE, BASE_IMAGE])
        self._load(BASE_IMAGE)

    def load_image(self, archive: Path) -> None:
        """Load a `docker save` archive."""
        run([self._kind, "load", "image-archive", str(archive), "--name", self._layout.name], timeout=600)

    def _load(self, tag: str) -> None:
        run([self._kind, "load", "docker-image", tag, "--name", self._layout.name], timeout=600)

    def _works(self) -> bool:
        if self._layout.name not in run([self._kind, "get", "clusters"]).split():
            return False
        self._layout.state.mkdir(parents=True, exist_ok=True)
        export = ["export", "kubeconfig", "--name", self._layout.name, "--kubeconfig", str(self.kubeconfig)]
        ready = ["get", "--raw", "/readyz"]
        return answers([self._kind, *export], timeout=60) and answers([*self.kubectl, *ready], timeout=20)

    def _delete(self) -> None:
        name = ["--name", self._layout.name, "--kubeconfig", str(self.kubeconfig)]
        run([self._kind, "delete", "cluster", *name], timeout=300)
        shutil.rmtree(self._layout.state, ignore_errors=True)

    @cached_property
    def _kind(self) -> str:
        """kind's program: the one on PATH, else built from its Go module into the cache."""
        if found := shutil.which("kind"):
            return found
        built = self._layout.cache / f"kind-{KIND}" / "kind"
        with locked(self._layout.cache / "locks" / "kind"):
            if not built.exists():
                say(f"installing kind {KIND} from its Go module")
                part = built.parent.with_name(f".kind-{KIND}.part")
                destination = {"GOBIN": os.fspath(part)}
                run(["go", "install", f"sigs.k8s.io/kind@{KIND}"], environment=destination, timeout=900)
                part.replace(built.parent)
        return os.fspath(built)

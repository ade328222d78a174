"""The cluster that `KUBECONFIG` names: used as it is, neither started nor stopped."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster.image import Recipe
from tests.cluster.process import ClusterError, run

_HOST_ADDRESS = "PODFERRY_HOST_ADDRESS"
_REMEDY = "push the image to a registry that it pulls from, or unset KUBECONFIG to get a cluster of our own"


class ExistingCluster:
    """The user's own cluster as the backend of `Cluster`."""

    owner: Mapping[str, str] = {}
    inside: Sequence[str] = ()
    network_namespace = None

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def up(self) -> None:
        """Check that it responds."""
        try:
            run([*self.kubectl, "get", "--raw", "/readyz"], timeout=30)
        except ClusterError as error:
            raise ClusterError(
                f"the cluster of KUBECONFIG does not answer; unset it, or start it\n{error}"
            ) from error

    def down(self) -> None:
        """Do nothing: it is the user's."""

    @property
    def kubectl(self) -> Sequence[str]:
        """The prefix of every kubectl call. KUBECONFIG, which may list several files, stays in force."""
        kubectl = shutil.which("kubectl")
        if not kubectl:
            raise ClusterError("kubectl is not on PATH: install it")
        return (kubectl,)

    @property
    def host_address(self) -> str:
        """This machine's address as pods see it."""
        address = os.environ.get(_HOST_ADDRESS)
        if not address:
            raise ClusterError(f"set {_HOST_ADDRESS} to the address at which pods reach this machine")
        return address

    def build_image(self, recipe: Recipe) -> None:
        """Not possible: raises ClusterError."""
        raise ClusterError(f"{recipe.tag} cannot be built into the cluster of KUBECONFIG: {_REMEDY}")

    def load_base_image(self) -> None:
        """Not possible: raises ClusterError."""
        raise ClusterError(f"the base image cannot be loaded into the cluster of KUBECONFIG: {_REMEDY}")

    def load_image(self, archive: Path) -> None:
        """Not possible: raises ClusterError."""
        raise ClusterError(f"{archive} cannot be loaded into the cluster of KUBECONFIG: {_REMEDY}")

"""Required Debian packages: installed if permitted, otherwise named."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from tests.cluster.files import say
from tests.cluster.process import ClusterError, answers, run

# A file or a program that shows that a package is there, and the package.
NODE_NEEDS = {
    "containerd": "containerd",
    "ctr": "containerd",
    "runc": "runc",
    "/usr/lib/cni/bridge": "containernetworking-plugins",
    "nft": "nftables",
    "conntrack": "conntrack",
    "ip": "iproute2",
    "openssl": "openssl",
    "setpriv": "util-linux",
    "nsenter": "util-linux",
}
IMAGE_NEEDS = {
    "mmdebstrap": "mmdebstrap",
    "buildah": "buildah",
    "setpriv": "util-linux",
    "unshare": "util-linux",
}
WAITS = "-oDPkg::Lock::Timeout=600"
"""apt-get waits for another one, in seconds."""
_SYSTEM = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ensure(needs: Mapping[str, str]) -> None:
    """Install the packages that are missing.

    Raises:
        ClusterError: Some are missing and cannot be installed; names them all.
    """
    missing = missing_packages(needs)
    if not missing:
        return
    remedy = f"as root, run: apt-get install {' '.join(missing)}"
    if not shutil.which("apt-get"):
        raise ClusterError(f"missing, and there is no apt-get to install them: {', '.join(missing)}")
    if os.geteuid() != 0:
        raise ClusterError(f"these packages are missing: {', '.join(missing)}. {remedy}")
    say(f"installing {', '.join(missing)}")
    _install(missing)
    if still := missing_packages(needs):
        raise ClusterError(f"apt-get has installed all, but these are not to be found: {', '.join(still)}")


def missing_packages(needs: Mapping[str, str]) -> list[str]:
    """The packages of `needs` that are missing, each once."""
    search = f"{os.environ.get('PATH', '')}:{_SYSTEM}"
    return sorted({package for shown_by, package in needs.items() if not _exists(shown_by, search)})


def _exists(shown_by: str, search: str) -> bool:
    return Path(shown_by).exists() if shown_by.startswith("/") else bool(shutil.which(shown_by, path=search))


def _install(packages: list[str]) -> None:
    # Not caged: dpkg must not be killed half-way with an interrupted test run.
    quiet = {"DEBIAN_FRONTEND": "noninteractive"}
    install = ["apt-get", WAITS, "install", "-y", "-q", "--no-install-recommends", *packages]
    # Lists may be old or absent; a failing third-party list must not matter if the install works.
    answers(["apt-get", WAITS, "update", "-q"], timeout=300)
    run(install, timeout=900, environment=quiet, progress="installing packages")

"""A share of Samba that pods reach."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.cluster.cluster import Cluster
from tests.e2e.bucket import free_port
from tests.e2e.source import Source
from tests.support import samba


@contextlib.contextmanager
def smb(cluster: Cluster, files: Path) -> Iterator[Source]:
    """A share of the folder."""
    host, port = cluster.host_address, free_port(cluster)
    with tempfile.TemporaryDirectory() as folder:
        command = samba.server_command(files, Path(folder), port, "bind interfaces only = no")
        share = f"smb://{host}:{port}/{samba.SHARE}"
        with cluster.run_in_network(command, port=port):
            # As Kubernetes names the keys of its own type for user and password.
            secret = {"username": samba.USER, "password": samba.PASSWORD}
            yield Source(f"{share}/set", f"{share}/checkpoints", secret, {}, samba.KEYS)

"""A Hadoop file system on loopback with two NameNodes that take over from each other."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from tests.support.hadoop import SERVERS, Hadoop, common, data_node, wait_until_writable, written
from tests.support.real_servers import free_port, running

NAMESERVICE = "cluster1"
FAILOVER = f"{SERVERS}.namenode.ha.ConfiguredFailoverProxyProvider"


@contextlib.contextmanager
def highly_available(folder: Path) -> Iterator[tuple[Hadoop, HighAvailability]]:
    """A nameservice of two NameNodes that share a directory of edits; the first is active."""
    ports = {node: (free_port(), free_port()) for node in ("nn1", "nn2")}
    data = free_port()
    properties = {
        "fs.defaultFS": f"hdfs://{NAMESERVICE}",
        "dfs.nameservices": NAMESERVICE,
        f"dfs.ha.namenodes.{NAMESERVICE}": "nn1,nn2",
        f"dfs.client.failover.proxy.provider.{NAMESERVICE}": FAILOVER,
        "dfs.namenode.shared.edits.dir": f"file://{folder}/edits",
        "dfs.ha.fencing.methods": "shell(/bin/true)",
        "dfs.ha.tail-edits.period": "1",
        "dfs.ha.log-roll.period": "1",
        **common(folder, "127.0.0.1", data),
    }
    for node, (rpc, web) in ports.items():
        properties[f"dfs.namenode.rpc-address.{NAMESERVICE}.{node}"] = f"127.0.0.1:{rpc}"
        properties[f"dfs.namenode.http-address.{NAMESERVICE}.{node}"] = f"127.0.0.1:{web}"
    client = written(folder, folder, properties, data, (), NAMESERVICE, NAMESERVICE)
    (folder / "edits").mkdir()
    with ExitStack() as stack:
        for node, (rpc, _) in ports.items():
            own = folder / node
            named = {**properties, "dfs.ha.namenode.id": node, "dfs.namenode.name.dir": f"{own}/name"}
            server = written(folder, own, named, data, (), NAMESERVICE, NAMESERVICE)
            words = server.command(f"{SERVERS}.namenode.NameNode")
            first = "-format" if node == "nn1" else "-bootstrapStandby"
            subprocess.run([*words, first, "-nonInteractive"], cwd=own, capture_output=True, check=True)
            stack.enter_context(running(words, rpc, own / "log"))
        switch = HighAvailability(client)
        switch.activate("nn1")
        stack.enter_context(data_node(client, folder, "127.0.0.1"))
        wait_until_writable(client, {})
        yield client, switch


class HighAvailability:
    """Switches between the NameNodes `nn1` and `nn2`."""

    def __init__(self, client: Hadoop) -> None:
        self._client = client

    def activate(self, node: str) -> None:
        """Make a NameNode active; the other one must be in standby."""
        self._admin("-transitionToActive", node)

    def fail_over(self, old: str, new: str) -> None:
        """Put one in standby, and make the other active."""
        self._admin("-transitionToStandby", old)
        self.activate(new)

    def _admin(self, *words: str) -> None:
        self._client.run("org.apache.hadoop.hdfs.tools.DFSHAAdmin", *words)

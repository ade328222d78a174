"""A Hadoop file system of one NameNode and one DataNode, on loopback."""

from __future__ import annotations

import contextlib
import getpass
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import hdfs_native

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed

HEAP = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
SERVERS = "org.apache.hadoop.hdfs.server"
LOOPBACK = "127.0.0.1:0"


@contextlib.contextmanager
def hadoop(folder: Path) -> Iterator[str]:
    """The address of the NameNode, `host:port`."""
    port, data_port = free_port(), free_port()
    _configure(folder, port, data_port)
    java = ["java", *HEAP, "-cp", f"{folder}:{installed('hadoop')}/*", f"-Duser.name={getpass.getuser()}"]
    node = [*java, f"{SERVERS}.namenode.NameNode"]
    subprocess.run([*node, "-format", "-nonInteractive"], cwd=folder, capture_output=True, check=True)
    data_node = [*java, f"{SERVERS}.datanode.DataNode"]
    with running(node, port, folder / "name.log"), running(data_node, data_port, folder / "data.log"):
        _wait_for_data_node(f"hdfs://127.0.0.1:{port}")
        yield f"127.0.0.1:{port}"


def _wait_for_data_node(address: str, seconds: float = 60) -> None:
    """It listens before the NameNode knows it; a file that can be written shows that it does."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            with hdfs_native.Client(address).create(
                "/ready", hdfs_native.WriteOptions(overwrite=True)
            ) as file:
                file.write(b"1")
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def _configure(folder: Path, port: int, data_port: int) -> None:
    for name in ("hdfs", "datanode"):  # looked for on the class path
        (folder / "webapps" / name).mkdir(parents=True)
    _write(folder / "core-site.xml", {"fs.defaultFS": f"hdfs://127.0.0.1:{port}"})
    _write(
        folder / "hdfs-site.xml",
        {
            "dfs.namenode.name.dir": f"{folder}/name",
            "dfs.namenode.http-address": LOOPBACK,
            "dfs.namenode.rpc-bind-host": "127.0.0.1",
            "dfs.namenode.safemode.extension": "0",
            "dfs.datanode.data.dir": f"{folder}/data",
            "dfs.datanode.address": f"127.0.0.1:{data_port}",
            "dfs.datanode.hostname": "127.0.0.1",
            "dfs.datanode.http.address": LOOPBACK,
            "dfs.datanode.ipc.address": LOOPBACK,
            "dfs.replication": "1",
        },
    )


def _write(path: Path, properties: dict[str, str]) -> None:
    rows = (
        f"<property><name>{key}</name><value>{value}</value></property>" for key, value in properties.items()
    )
    path.write_text(f"<configuration>{''.join(rows)}</configuration>")

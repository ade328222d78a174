"""A Hadoop file system on loopback: one NameNode and one DataNode."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module  # what only these tests need is not installed for the others
from pathlib import Path

from tests.support.real_servers import free_port, running
from tests.support.server_binaries import installed

HEAP = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
OPENED = ("--add-opens", "java.base/java.lang=ALL-UNNAMED")
"""WebHDFS's Jersey needs it from Java 17 on."""
SERVERS = "org.apache.hadoop.hdfs.server"
QUIET = """log4j.rootLogger=WARN, E
log4j.appender.E=org.apache.log4j.ConsoleAppender
log4j.appender.E.target=System.err
log4j.appender.E.layout=org.apache.log4j.PatternLayout
log4j.appender.E.layout.ConversionPattern=%p %c: %m%n
"""
"""Configuration of log4j: warnings, to the log."""


@dataclass(frozen=True, slots=True)
class Hadoop:
    """A running file system.

    Attributes:
        address: `host:port` of the NameNode's RPC, or the nameservice.
        web: `host:port` of its WebHDFS, or the nameservice.
        configuration: Directory with the client's `core-site.xml` and `hdfs-site.xml`.
        data_port: Of the DataNode's transfers.
        java: The command of Java with class path and system properties.
        properties: Of the configuration.
    """

    address: str
    web: str
    configuration: Path
    data_port: int
    java: tuple[str, ...]
    properties: Mapping[str, str]

    def command(self, main: str, *words: str) -> list[str]:
        """A command of Hadoop, such as `FsShell`, by its Java class."""
        return [*self.java, main, *words]

    def run(self, main: str, *words: str, **environ: str) -> str:
        """What a command prints; a failure is raised."""
        done = subprocess.run(
            self.command(main, *words),
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "HADOOP_USER_NAME": getpass.getuser(), **environ},
        )
        if done.returncode:
            raise RuntimeError(f"{main} {words}: {done.returncode}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def shell(self, *words: str, **environ: str) -> str:
        """`hdfs dfs`."""
        return self.run("org.apache.hadoop.fs.FsShell", *words, **environ)

    def admin(self, *words: str) -> str:
        """`hdfs dfsadmin`."""
        return self.run("org.apache.hadoop.hdfs.tools.DFSAdmin", *words)


@contextlib.contextmanager
def hadoop(
    folder: Path,
    more: Mapping[str, str] = {},
    java: Sequence[str] = (),
    host: str = "127.0.0.1",
    identity: Mapping[str, str] = {},
) -> Iterator[Hadoop]:
    """A file system with one NameNode.

    Args:
        folder: Where it stores everything; empty.
        more: Properties of all its processes and of clients.
        java: Options of Java.
        host: Where it listens; clients reach it there.
        identity: Arguments of hdfs-native's client.
    """
    rpc, web, data = (free_port() for _ in range(3))
    properties = {
        "fs.defaultFS": f"hdfs://{host}:{rpc}",
        "dfs.namenode.http-address": f"{host}:{web}",
        **common(folder, host, data),
        **more,
    }
    options = (*java, *_without_dns(folder, host))
    found = written(folder, folder, properties, data, options, f"{host}:{rpc}", f"{host}:{web}")
    node = found.command(f"{SERVERS}.namenode.NameNode")
    subprocess.run([*node, "-format", "-nonInteractive"], cwd=folder, capture_output=True, check=True)
    with running(node, rpc, folder / "name.log", host), data_node(found, folder, host):
        wait_until_writable(found, identity)
        yield found


def _without_dns(folder: Path, host: str) -> tuple[str, ...]:
    """Java's option for an address of a network that has no DNS: asking for its name would take minutes."""
    if host == "127.0.0.1":
        return ()
    hosts = folder / "hosts"
    hosts.write_text(f"127.0.0.1 localhost\n{host} {host} {socket.gethostname()}\n")
    return (f"-Djdk.net.hosts.file={hosts}",)


def data_node(found: Hadoop, folder: Path, host: str) -> contextlib.AbstractContextManager[None]:
    words = found.command(f"{SERVERS}.datanode.DataNode")
    return running(words, found.data_port, folder / "data.log", host)


def wait_until_writable(found: Hadoop, identity: Mapping[str, str], seconds: float = 60) -> None:
    """The DataNode listens before the NameNode knows it; a file that can be written shows that it does."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            conf = str(found.configuration)
            native = import_module("hdfs_native")
            client = native.Client(f"hdfs://{found.address}", config_dir=conf, **identity)
            with client.create("/ready", native.WriteOptions(overwrite=True)) as file:
                file.write(b"1")
        except (OSError, RuntimeError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)
        else:
            return


def common(folder: Path, host: str, data_port: int) -> dict[str, str]:
    return {
        "dfs.namenode.name.dir": f"{folder}/name",
        "dfs.namenode.rpc-bind-host": host,
        "dfs.namenode.safemode.extension": "0",
        "dfs.namenode.datanode.registration.ip-hostname-check": "false",  # addresses have no names
        "dfs.namenode.fs-limits.min-block-size": "1048576",
        "dfs.datanode.data.dir": f"{folder}/data",
        "dfs.datanode.address": f"{host}:{data_port}",
        "dfs.datanode.hostname": host,
        "dfs.datanode.http.address": f"{host}:0",
        "dfs.datanode.ipc.address": f"{host}:0",
        "dfs.replication": "1",
    }


def written(
    folder: Path,
    own: Path,
    properties: Mapping[str, str],
    data_port: int,
    options: Sequence[str],
    address: str,
    web: str,
) -> Hadoop:
    """The commands of processes whose configuration is in the directory `own`."""
    for name in ("hdfs", "datanode"):  # looked for on the class path
        (own / "webapps" / name).mkdir(parents=True, exist_ok=True)
    rows = "".join(
        f"<property><name>{key}</name><value>{value}</value></property>\n"
        for key, value in properties.items()
    )
    for name in ("core-site.xml", "hdfs-site.xml"):
        (own / name).write_text(f"<configuration>\n{rows}</configuration>\n")
    (own / "log4j.properties").write_text(QUIET)
    user = f"-Duser.name={getpass.getuser()}"
    java = ("java", *HEAP, *OPENED, *options, "-cp", f"{own}:{installed('hadoop')}/*", user)
    return Hadoop(address, web, own, data_port, java, properties)


def serve(folder: Path, host: str, files: Path) -> None:
    """Serve a directory, with its name, until this process is terminated; `ready` has the addresses."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    with hadoop(folder, host=host) as found:
        found.shell("-put", str(files), "/")
        (folder / "unready").write_text(f"{found.address} {found.web}")
        (folder / "unready").rename(folder / "ready")
        threading.Event().wait()


if __name__ == "__main__":
    serve(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))

"""The first process of a cluster: it holds its namespaces, starts the parts and ends with the first of them.

`launch` makes the namespaces (mounts, network, processes) and starts `run` as the first process in
them. Since the kernel ends every process of a process namespace with its first, and lets go of mounts
and network devices with the last process that sees them, ending a cluster is ending this one process.
"""

from __future__ import annotations

import ctypes
import os
import ssl
import subprocess
import sys
import traceback
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.cluster import cgroups
from tests.cluster.components import Component, control_plane, node_parts
from tests.cluster.files import write_atomically
from tests.cluster.layout import API_PORT, GATEWAY, Layout
from tests.cluster.namespaces import further_node, own_mounts, own_network
from tests.cluster.process import ClusterError, ProcessId, run, tail, wait_until

ROOT = Path(__file__).parents[2]

_NEW_MOUNTS, _NEW_PROCESSES, _NEW_NETWORK = 0x00020000, 0x20000000, 0x40000000  # clone(2)


def command(verb: str, layout: Layout, binaries: Path) -> list[str]:
    """The command that runs `launch` or `run` in a process of its own."""
    module = "tests.cluster.supervisor"
    words = (verb, layout.name, os.fspath(layout.cache), str(layout.nodes), os.fspath(binaries))
    return [sys.executable, "-m", module, *words]


def launch(layout: Layout, binaries: Path) -> None:
    """Start `run` in new namespaces, record its process id, and leave it running."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_NEW_MOUNTS | _NEW_NETWORK | _NEW_PROCESSES):
        raise ClusterError(f"no namespaces of our own: {os.strerror(ctypes.get_errno())}")
    log = layout.logs / "supervisor.log"
    with log.open("ab") as output:
        first = subprocess.Popen(
            command("run", layout, binaries),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            cwd="/",
        )
    if identity := ProcessId.of(first.pid):
        identity.save(layout.init_record)


def supervise(layout: Layout, binaries: Path) -> None:
    """Start everything, then wait for the first part that ends, which none should.

    Raises:
        ClusterError: A part ended, or did not begin to work.
    """
    first, *others = layout.members
    own_mounts()
    own_network(first)
    inside = {first.name: []} | {node.name: further_node(node, first) for node in others}
    for node in layout.members:
        cgroups.create(node.cgroup)
    run(["openssl", "genrsa", "-out", str(layout.state / "service-accounts.key"), "2048"])
    running = _start(layout, control_plane(layout, binaries), inside)
    wait_until("the API server", lambda: _all_running(layout, running) and _ready(layout), 90)
    running |= _start(layout, node_parts(layout, binaries), inside)
    write_atomically(layout.started, "")
    _reap(layout, binaries, running, inside)


def _start(
    layout: Layout, components: Sequence[Component], inside: Mapping[str, Sequence[str]]
) -> dict[int, str]:
    """Start parts; `inside` has the prefix of each node's commands. Their names, by process id."""
    started = {}
    for component in components:
        command = [*inside[component.node], *component.command]
        with (layout.logs / f"{component.name}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=layout.state
            )
        started[process.pid] = component.name
        process.returncode = 0  # `_reap` collects it; the object must not
    return started


def _all_running(layout: Layout, running: dict[int, str]) -> bool:
    for pid, name in running.items():
        if ProcessId.of(pid) is None:
            raise _ended(layout, name, "ended while it was to start")
    return True


def _ready(layout: Layout) -> bool:
    try:
        context = ssl.create_default_context(cafile=os.fspath(layout.api_certificate))
        with urllib.request.urlopen(
            f"https://{GATEWAY}:{API_PORT}/readyz", timeout=2, context=context
        ) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):  # no certificate yet, no listener, or not ready
        return False


def _reap(
    layout: Layout, binaries: Path, running: dict[int, str], inside: Mapping[str, Sequence[str]]
) -> None:
    while True:
        pid, status = os.wait()
        if pid not in running:  # an orphan of a container
            continue
        name = running.pop(pid)
        if not layout.restarts(name).exists():
            raise _ended(layout, name, f"ended with {os.waitstatus_to_exitcode(status)}")
        layout.restarts(name).unlink()
        parts = (*control_plane(layout, binaries), *node_parts(layout, binaries))
        running |= _start(layout, [part for part in parts if part.name == name], inside)


def _ended(layout: Layout, name: str, how: str) -> ClusterError:
    log = layout.logs / f"{name}.log"
    return ClusterError(f"{name} {how}; the end of {log}:\n{tail(log.read_text(errors='replace'))}")


def main(verb: str, name: str, cache: str, nodes: str, binaries: str) -> int:
    """`launch` or `run`. A failure is left in a file, for `up` to read."""
    layout = Layout(name, Path(cache), int(nodes))
    try:
        (launch if verb == "launch" else supervise)(layout, Path(binaries))
    except Exception as error:  # noqa: BLE001 - nothing else would report it
        traceback.print_exc()
        write_atomically(layout.failure, str(error) or repr(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

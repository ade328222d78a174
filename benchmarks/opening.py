"""Starts an agent as a pod's sidecar, and prints the seconds until its gate was open.

    opening.py URI DIRECTORY --endpoint URL [--cache URL | --shared VIEW | --fill] [--read WORKERS]

With `--fill`, a holder starts at the same time and has to fetch the dataset first; with `--read`, the time
ends when every file has been read.
"""

from __future__ import annotations

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from holders import PATIENCE, holders
from peers import OURS_PROGRAM
from reader import read

from podferry.contract.http_api import SPEC_VARIABLE
from podferry.contract.spec import Access, DatasetMode, DatasetSpec, FerrySpec, MountedDataset
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.control.http_client import AgentClient


@contextmanager
def sidecar(words: Sequence[str], spec: FerrySpec) -> Iterator[AgentClient]:
    """An agent while it runs. Its socket listens from the start: a request waits, and is not refused."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port, descriptor = listener.getsockname()[1], listener.fileno()
        command = [OURS_PROGRAM, "agent", *words, f"--listen-fd={descriptor}", "--log-level=warning"]
        environment = {**os.environ, SPEC_VARIABLE: encode_spec(spec).decode()}
        process = subprocess.Popen(command, env=environment, pass_fds=[descriptor], start_new_session=True)
    try:
        yield AgentClient(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(PATIENCE)


@contextmanager
def opened(
    uri: str, target: Path, endpoint: str, private: Path, *, cache: str = "", shared: str = ""
) -> Iterator[None]:
    """A pod's agent from its open gate on.

    Args:
        uri: The dataset.
        target: Where the agent stages it; is created.
        endpoint: Of the source.
        private: For the agent's own directory.
        cache: A holder to copy from; empty for the source.
        shared: The view of a stage to use instead of a copy.

    Raises:
        RuntimeError: The gate is refused.
    """
    if shared:
        mounted = MountedDataset("pvc://cache/files", DatasetMode.SHARE, str(target), source=uri)
        spec, words = FerrySpec(mounted=(mounted,)), [f"--shared-dir={shared}"]
    else:
        target.mkdir()
        spec = FerrySpec(datasets=(DatasetSpec(uri, str(target), access=Access(endpoint=endpoint)),))
        words = [f"--dataset-dir={target}", f"--claim-dir={target}.podferry"]
        words += [f"--dataset-cache={cache}"] if cache else []
    control = private / "control"
    control.mkdir()
    with sidecar([f"--control-dir={control}", *words], spec) as agent:
        gate = agent.wait_for_gate()
        if not gate.open:
            raise RuntimeError(f"the gate is refused: {gate.problems}")
        yield


def seconds_of(given: argparse.Namespace, private: Path) -> float:
    """From the agent's start to its open gate, or until every file has been read."""
    target, cache = Path(given.directory), given.cache
    started = time.perf_counter()
    with ExitStack() as stack:
        if given.fill:
            [holder] = stack.enter_context(holders(given.endpoint, given.uri, private))
            cache = holder.url
        pod = opened(given.uri, target, given.endpoint, private, cache=cache, shared=given.shared)
        stack.enter_context(pod)
        if given.read:
            read(str(target), given.read)
        return time.perf_counter() - started


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("uri")
    parser.add_argument("directory")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--cache", default="")
    parser.add_argument("--shared", default="")
    parser.add_argument("--fill", action="store_true")
    parser.add_argument("--read", type=int)
    given = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="podferry-bench-", dir="/dev/shm") as private:
        print(seconds_of(given, Path(private)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

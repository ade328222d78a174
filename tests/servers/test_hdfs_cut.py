"""Downloads from HDFS whose DataNode dies in the middle, and comes back: whole files, or none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podferry.contract.exit_codes import EXIT_FAILED
from tests.support.hadoop import Hadoop, hadoop
from tests.support.patience import PATIENCE
from tests.support.real_servers import running
from tests.support.run_command import wait_for

DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
MIB = 1 << 20
FILES = {"a": 96 * MIB, "b": 64 * MIB}


@pytest.fixture
def served(tmp_path: Path):
    folder = tmp_path / "server"
    folder.mkdir()
    with hadoop(folder) as found:
        yield found


def data_node_of(found: Hadoop) -> int:
    """The process of the DataNode that the fixture started."""
    words = (DATA_NODE.encode(), str(found.configuration).encode())
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:  # it has ended
            continue
        if all(word in line for word in words):
            return int(process.name)
    raise AssertionError("there is no DataNode")


def received(target: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in target.rglob("*") if file.is_file())


def test_a_download_outlives_its_data_node(served: Hadoop, tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    for name, size in FILES.items():
        (tmp_path / "set" / name).write_bytes(os.urandom(MIB) * (size // MIB))
    served.shell("-put", str(tmp_path / "set"), "/")
    uri, target = f"hdfs://{served.address}/set", tmp_path / "got"
    words = [sys.executable, "-m", "podferry.cli.main", "dataset", "get", uri, str(target)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as got:
        wait_for(lambda: received(target) > 8 * MIB or got.poll() is not None)
        assert got.poll() is None, "it has ended before the DataNode"
        os.kill(data_node_of(served), signal.SIGKILL)
        with running(served.command(DATA_NODE), served.data_port, tmp_path / "again.log"):
            said, _ = got.communicate(timeout=PATIENCE)
            code = got.returncode
            if code == EXIT_FAILED:  # on a busy machine the DataNode starts later than the attempts last
                again = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
                code, said = again.returncode, said + again.stderr
            assert code == 0, said
    for name in FILES:
        assert (target / name).read_bytes() == (tmp_path / "set" / name).read_bytes()

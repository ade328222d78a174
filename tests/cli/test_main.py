"""The command itself: help, exit codes, imports, closed pipes and interrupts."""

import os
import signal
import socket
import subprocess
import sys

import pytest

from podferry.cli.main import main
from podferry.cli.verbs import VERBS
from podferry.contract.exit_codes import EXIT_INTERRUPTED, EXIT_NEVER
from tests.support.patience import PATIENCE

COMMAND = [sys.executable, "-m", "podferry.cli.main"]
HEAVY = ("asyncio", "aiohttp", "click", "rich", "obstore", "fsspec", "structlog", "uvloop", "yaml")


def test_help_names_all_verbs_without_loading_them():
    code = "import sys; from podferry.cli.main import main; main(['--help']); print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert all(verb in out for verb in VERBS)
    assert not {"aiohttp", "obstore", "fsspec", "yaml", "rich"} & set(out.splitlines()[-1].split())


def test_wait_loads_next_to_nothing():
    code = "import sys, podferry.sidecar.control.wait_command, podferry.cli.main; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not set(HEAVY) & set(out.split())


def test_a_supervisor_loads_next_to_nothing():
    """Each pod waits for it, and it stays."""
    code = "import sys, podferry.cli.main, podferry.cli.agent.supervise; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {*HEAVY, "msgspec", "logging", "dataclasses", "inspect", "datetime"} & set(out.split())


def test_an_agent_loads_what_its_data_needs_and_no_more():
    """The pod waits for its start."""
    command = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "podferry.cli.entry_point",
        "agent",
        "--worker",
        "--help",
    ]
    stderr = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    loaded = {line.rpartition("|")[2].strip() for line in stderr.splitlines()}
    assert "podferry.sidecar.agent.worker" in loaded
    assert (
        not {
            "aiohttp",
            "prometheus_client",
            "rich.console",
            "podferry.sidecar.checkpoint.pipeline.checkpoint_job",
            "podferry.sidecar.dataset.all_datasets_job",
            "podferry.sidecar.outputs.output_job",
        }
        & loaded
    )


def test_a_closed_pipe_prints_no_traceback(tmp_path):
    for number in range(1500):
        (tmp_path / f"file-{number:05}-{'x' * 60}").write_bytes(b"")
    child = subprocess.Popen(
        [*COMMAND, "dataset", "ls", str(tmp_path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr is not None
    errors = child.stderr.read()
    child.stderr.close()
    assert child.wait(PATIENCE) == 1
    assert b"Traceback" not in errors
    assert b"Exception ignored" not in errors


def test_ctrl_c_ends_with_130_and_no_traceback():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        words = [*COMMAND, "dataset", "ls", "s3://bucket/x", "--endpoint", endpoint]
        child = subprocess.Popen(
            words,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **keys},
        )
        silent.settimeout(PATIENCE)
        connection, _ = silent.accept()
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=PATIENCE)
        connection.close()
    assert child.returncode == 130, errors
    assert "Traceback" not in errors


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_the_exit_code_is_the_same_without_standard_streams(closed, tmp_path):
    words = ["wait", "--refused", "x", "--termination-log", str(tmp_path / "log")]
    shell = subprocess.run(["sh", "-c", f'"$@" {closed}', "sh", *COMMAND, *words], check=False)
    assert shell.returncode == EXIT_NEVER


def test_an_interrupt_while_a_verb_is_loaded_is_quiet(monkeypatch):
    def load(name):
        raise KeyboardInterrupt

    monkeypatch.setattr("podferry.cli.main.import_module", load)
    assert main(["wait"]) == EXIT_INTERRUPTED

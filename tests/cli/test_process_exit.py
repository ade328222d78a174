"""Every verb ends with an exit code, whatever ends it: no signal, no traceback.

Each run is a process. `EXITS` is the number of runs: `make exits` has 200, a test run 20.
"""

import itertools
import os
import random
import signal
import socket
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import click
import pytest

from podferry.cli.main import SMALL_VERBS
from podferry.cli.verbs import podferry
from tests.support.patience import PATIENCE

RUNS = int(os.environ.get("EXITS", "20"))
COMMAND = [sys.executable, "-m", "podferry.cli.main"]
KEYS = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
FORBIDDEN = ("Traceback", "Exception ignored", "Fatal Python error", "panicked")
EMPTY_LIST = b"<ListBucketResult><Name>b</Name><IsTruncated>false</IsTruncated></ListBucketResult>"


class EmptyBucket(BaseHTTPRequestHandler):
    """Answers every request with an empty listing."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/xml")
        self.send_header("Content-Length", str(len(EMPTY_LIST)))
        self.end_headers()
        self.wfile.write(EMPTY_LIST)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def stores():
    """URLs of a server that refuses connections, and of an empty bucket."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), EmptyBucket)
    Thread(target=server.serve_forever, daemon=True).start()
    with socket.socket() as refusing:
        refusing.bind(("127.0.0.1", 0))  # and does not listen
        ports = {"refuses": refusing.getsockname()[1], "empty": server.server_port}
        yield {name: f"http://127.0.0.1:{port}" for name, port in ports.items()}
    server.shutdown()
    server.server_close()


def all_verbs(group, *path):
    """Every verb as words, those of groups included."""
    for name in group.list_commands(None):
        if name in SMALL_VERBS:
            yield (*path, name)
            continue
        verb = group.get_command(click.Context(group), name)
        yield from all_verbs(verb, *path, name) if isinstance(verb, click.Group) else [(*path, name)]


LOCAL = {("run",), ("cache", "serve"), ("cache", "create"), ("cache", "rmr"), ("cache", "sync")}
"""Take an endpoint: the first is in the list with a command, the second waits for its store, the third only
prints, the last two ask a cluster first."""


def _command(path):
    command = podferry
    for name in path:
        command = None if name in SMALL_VERBS else command.get_command(click.Context(command), name)
    return command or click.Command("small")


def remote_verbs(directory):
    """Verbs that reach a store, with arguments."""
    yield ["doctor", "s3://b/x"]
    yield ["explain", "--list", "--annotation", "dataset=s3://b/x"]
    yield ["dataset", "pack", "s3://b/x", f"{directory}/packed"]
    yield ["dataset", "get", "s3://b/x", f"{directory}/target"]
    yield ["dataset", "sync", "s3://b/x", f"{directory}/synced"]
    yield from (["dataset", verb, "s3://b/x"] for verb in ("ls", "info", "freeze", "verify"))
    yield from (["checkpoints", verb, "s3://b/x"] for verb in ("ls", "show", "verify"))
    yield ["checkpoints", "gc", "s3://b/x", "--keep", "1"]
    yield ["checkpoints", "confirm", "s3://b/x", "lineage", "step-1"]
    yield ["checkpoints", "restore", "s3://b/x", "--to", f"{directory}/restored"]
    yield ["checkpoints", "export", "s3://b/x", "--to", "s3://b/exported"]


def ways_to_end(stores, directory):
    """(words, how it ends, the exit codes that are right), in an order that mixes verbs and ends."""
    remote = list(remote_verbs(str(directory)))
    ways = [
        *(([*words, "--endpoint", stores["refuses"]], by_itself, {1}) for words in remote),
        *(([*words, "--endpoint", stores["empty"]], by_itself, {0, 1}) for words in remote),
        *((words, by_ctrl_c, {130}) for words in remote),
        *(([*words, "--help"], by_itself, {0}) for words in all_verbs(podferry)),
        *(
            ([*words, "--no-such-option"], by_itself, {2})
            for words in all_verbs(podferry)
            if words != ("agent",)
        ),
        (["dataset", "ls", str(directory)], by_closed_pipe, {1}),
        (["dataset", "info", str(directory)], by_itself, {0}),
        (["run", "--", "true"], by_itself, {78}),
        (["run", "--outputs", "./outputs", "--", "true"], by_itself, {0}),
        (["run", "--dataset", "s3://b/x", "--endpoint", stores["empty"], "--", "true"], by_itself, {78}),
        (["no-such-verb"], by_itself, {2}),
    ]
    random.Random(1).shuffle(ways)  # noqa: S311 - an order that mixes them
    return ways


def start(words, directory, **streams):
    return subprocess.Popen(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        cwd=directory,
        env={**os.environ, **KEYS},
        **streams,
    )


def by_itself(words, directory):
    return start(words, directory, stdout=subprocess.DEVNULL)


def by_ctrl_c(words, directory):
    """Interrupt a process whose request is under way: the server has accepted it, and is silent."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        child = start([*words, "--endpoint", endpoint], directory, stdout=subprocess.DEVNULL)
        with accepted(silent, child):
            child.send_signal(signal.SIGINT)
            child.wait(60)
    return child


@contextmanager
def accepted(server, child):
    """A connection of the process, unless it ends without one."""
    server.settimeout(0.2)
    while child.poll() is None:
        with suppress(TimeoutError):
            connection, _ = server.accept()
            with connection:
                yield
            return
    yield


def by_closed_pipe(words, directory):
    """Close the pipe after one line, as `head -1` does."""
    child = start(words, directory, stdout=subprocess.PIPE)
    child.stdout.readline()
    child.stdout.close()
    child.stdout = None
    return child


def problem(way, directory):
    """What is wrong with one process's end, or None."""
    words, end, codes = way
    child = end(words, directory)
    _, errors = child.communicate(timeout=PATIENCE)
    if child.returncode in codes and not any(text in errors for text in FORBIDDEN):
        return None
    return f"podferry {' '.join(words)}: {end.__name__}: exit code {child.returncode}: {errors}"


@pytest.mark.timeout(240 + 12 * RUNS)
def test_no_end_is_a_signal_or_a_traceback(stores, tmp_path):
    for number in range(1500):
        (tmp_path / f"file-{number:05}-{'x' * 60}").touch()
    ways = itertools.islice(itertools.cycle(ways_to_end(stores, tmp_path)), RUNS)
    with ThreadPoolExecutor(4) as threads:
        assert not list(filter(None, threads.map(lambda way: problem(way, tmp_path), ways)))


def test_the_runs_cover_every_verb_that_reaches_a_store():
    remote = {tuple(words[: 1 + (words[0] in {"dataset", "checkpoints"})]) for words in remote_verbs("")}
    takes_endpoint = {
        path
        for path in all_verbs(podferry)
        if "endpoint" in {param.name for param in _command(path).params} and path not in LOCAL
    }
    assert takes_endpoint <= remote


def test_handlers_of_atexit_run_and_output_is_written():
    code = (
        "import atexit, sys; from podferry.cli.process_exit import exit_process;"
        "atexit.register(sys.stdout.write, 'handler'); sys.stdout.write('output '); exit_process(7)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, "output handler", "")


def test_a_defect_is_a_traceback_and_exit_code_1(tmp_path):
    code = (
        "import sys; from podferry.cli import main, verbs; sys.argv = ['podferry', 'explain'];"
        "verbs.podferry.main = lambda *_, **__: 1 / 0; main.program()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ZeroDivisionError" in done.stderr


def test_output_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "a").touch()
    with Path("/dev/full").open("w") as full:
        child = start(["dataset", "ls", str(tmp_path)], tmp_path, stdout=full)
        _, errors = child.communicate(timeout=PATIENCE)
    assert (child.returncode, errors.count("podferry: No space left on device")) == (1, 1)

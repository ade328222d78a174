"""`podferry cache serve` as a process, and `podferry dataset get --cache` from it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager
from urllib.error import URLError

import pytest

from podferry.contract.cache_api import STATUS_PATH
from tests.support.patience import PATIENCE
from tests.support.reserved_port import reserved_port

COMMAND = [sys.executable, "-m", "podferry", "cache", "serve"]


@pytest.fixture
def source(tmp_path):
    for name, size in {"a/1.bin": 10, "large.bin": 20_000_000, "b": 0}.items():
        path = tmp_path / "source" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(size))
    return tmp_path / "source"


def files(root):
    return {path.relative_to(root): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@contextmanager
def serving(*words):
    """A holder and its URL, once it has the dataset."""
    process = subprocess.Popen([*COMMAND, *map(str, words), "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "dataset complete" in line:
                break
        yield process, f"http://{re.search(r'address (127.0.0.1:[0-9]+)', ''.join(lines))[1]}"
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


@contextmanager
def running(*words):
    process = subprocess.Popen([*COMMAND, *map(str, words)], stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(PATIENCE)


def test_a_dataset_is_fetched_from_the_cache(podferry, source, tmp_path):
    with serving(source, tmp_path / "held") as (process, url):
        said = podferry("dataset", "get", "--cache", url, source, tmp_path / "stage")
        assert (said.code, said.err) == (0, "")
        assert files(tmp_path / "stage") == files(source)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE) == 0


def test_a_cache_that_is_not_there_is_one_warning(podferry, source, tmp_path):
    said = podferry("dataset", "get", "--cache", "http://127.0.0.1:9", source, tmp_path / "stage")
    assert said.code == 0
    assert said.err.count("the cache is not used") == 1
    assert files(tmp_path / "stage") == files(source)


def test_a_wrong_address_is_refused(podferry, source, tmp_path):
    said = podferry("dataset", "get", "--cache", "localhost", source, tmp_path / "stage")
    assert said.code == 2
    assert "Write https://host:port or http://host:port" in said.err


def test_a_port_in_use_is_named(podferry, source, tmp_path):
    with serving(source, tmp_path / "held") as (_, url):
        said = podferry("cache", "serve", source, tmp_path / "other", "--port", url.rpartition(":")[2])
        assert said.code != 0
        assert "--port" in said.err


def status_of(port):
    """What a holder says; nothing before it listens."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{STATUS_PATH}", timeout=PATIENCE) as response:
            return json.load(response)
    except URLError:
        return {"complete": [], "served_bytes": 0}


def until(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_holders_take_from_each_other(source, tmp_path):
    total = sum(map(len, files(source).values()))
    with ExitStack() as stack:
        ports = [stack.enter_context(reserved_port()) for _ in range(2)]
        for port, other in (ports, ports[::-1]):
            words = (source, tmp_path / str(port), "--port", port, "--peer", f"http://127.0.0.1:{other}")
            stack.enter_context(running(*words))
        until(lambda: all(status_of(port)["complete"] for port in ports))
        served = lambda: sum(status_of(port)["served_bytes"] for port in ports)  # noqa: E731
        until(lambda: served() >= total)  # what is sent counts a moment after it has arrived
        assert [files(tmp_path / str(port)) for port in ports] == [files(source)] * 2
        assert served() == total


def test_a_dataset_that_is_larger_than_its_size_is_not_fetched(podferry, source, tmp_path):
    said = podferry("cache", "serve", source, tmp_path / "held", "--port", "0", "--size", "10Mi")
    assert said.code == 78
    assert (
        "the dataset is larger than its space (it takes 19.1 MiB in whole blocks; --size is 10.0 MiB)"
        in said.err
    )
    assert "Give --size 21Mi." in said.err
    assert files(tmp_path / "held") == {}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("s3://a/b", "/proc/x"), "DIRECTORY: the path is reserved for the system"),
        (("s3://a/b", ""), "DIRECTORY is empty"),
        (("x y://", "held"), "URI: not a URI ('x y://')"),
    ],
)
def test_what_is_wrong_is_named_by_its_own_arguments(podferry, words, text):
    said = podferry("cache", "serve", *words, "--port", "0")
    assert said.code == 78
    assert text in said.err
    assert "--dataset" not in said.err


def test_a_dataset_that_is_missing_ends_the_command(podferry, tmp_path):
    said = podferry("cache", "serve", tmp_path / "nothing", tmp_path / "held", "--port", "0")
    assert said.code == 78
    assert "nothing" in said.err


@pytest.mark.parametrize(
    ("host", "text"),
    [("0.0.0.0", "--readers"), ("::", "--readers"), ("localhost", "not an address")],
)
def test_an_address_that_others_reach_needs_readers(podferry, source, tmp_path, host, text):
    said = podferry("cache", "serve", source, tmp_path / "held", "--host", host)
    assert said.code != 0
    assert text in said.err


def test_readers_need_a_cluster(podferry, source, tmp_path, monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    said = podferry("cache", "serve", source, tmp_path / "held", "--port", "0", "--readers", "team-*")
    assert said.code != 0
    assert "this is not a pod" in said.err

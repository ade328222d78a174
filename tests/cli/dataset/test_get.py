"""`podferry dataset get`: a dataset in a directory, one line, and the plan's refusals."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from podferry.cli.dataset import get
from podferry.contract.errors import Unavailable
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset import dataset_job as dataset
from podferry.sidecar.staging.volume_capacity import Capacity
from podferry.storage.memory.store import CONTENTS, Fault
from tests.support.patience import PATIENCE

HEAVY = (
    *("aiohttp", "awscrt", "click", "fsspec", "http.client", "obstore", "rich", "stamina", "structlog"),
    *("configparser", "dataclasses", "difflib", "ftplib", "json", "shlex", "shutil", "yaml"),
    *("podferry.contract.destination.commit", "podferry.contract.lineage", "podferry.contract.program"),
    *("podferry.contract.secret_endpoints", "podferry.sidecar.config.agent_config"),
    "podferry.storage.errors.vendor_fields",
)
"""Modules that a plain get does not use: loading them takes longer than the get."""


def file_sizes(folder: Path) -> dict[str, int]:
    return {
        path.relative_to(folder).as_posix(): path.stat().st_size
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_it_downloads_and_prints_one_line(podferry, digits, tmp_path):
    said = podferry("dataset", "get", digits, tmp_path / "stage")
    assert (said.code, said.err) == (0, "")
    assert file_sizes(tmp_path / "stage") == {
        "labels.csv": 300,
        "test/c.png": 12,
        "train/a.png": 5000,
        "train/b.png": 70_000,
    }
    line = rf"4 files, 73\.5 KiB in \d+\.\d\d s \([\d.]+ [KM]iB/s\) at {tmp_path}/stage\n"
    assert re.fullmatch(line, said.out), said.out


def test_a_second_run_fetches_missing_files_and_removes_deleted_ones(podferry, digits, tmp_path):
    podferry("dataset", "get", digits, tmp_path / "stage")
    (tmp_path / "stage/train/a.png").unlink()
    inode = (tmp_path / "stage/train/b.png").stat().st_ino
    said = podferry("dataset", "get", digits, tmp_path / "stage")
    assert ", 3 of them kept" in said.out
    assert (tmp_path / "stage/train/b.png").stat().st_ino == inode
    del CONTENTS["digits"].objects["v1/labels.csv"]
    assert podferry("dataset", "get", digits, tmp_path / "stage").code == 0
    assert file_sizes(tmp_path / "stage").keys() == {"test/c.png", "train/a.png", "train/b.png"}


def test_selection_shard_and_mode(podferry, digits, tmp_path):
    words = ["--include", "*.png", "--exclude", "test/", "--file-mode", "0600", "--shard", "1/2"]
    said = podferry("dataset", "get", digits, tmp_path / "stage", *words)
    assert said.code == 0, said.err
    assert file_sizes(tmp_path / "stage") == {"train/a.png": 5000}
    assert (tmp_path / "stage/train/a.png").stat().st_mode & 0o777 == 0o600


def test_it_is_refused_before_a_byte_moves(podferry, digits, tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "measure", lambda directory: Capacity(volume_bytes=10))
    said = podferry("dataset", "get", digits, tmp_path / "stage")
    assert (said.code, said.out) == (1, "")
    assert "the dataset is larger than its volume" in said.err
    assert file_sizes(tmp_path / "stage") == {}
    assert {call for call, _ in CONTENTS["digits"].calls} == {"entries"}


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["memory://digits/v1"], 2, "DIRECTORY"),
        (
            ["memory://digits/v1", "x", "--shard", "4/4"],
            1,
            "--shard: the shard's rank is not below its count",
        ),
        (["memory://digits/v1", "x", "--include", "{a,b}"], 1, "braces are not expanded"),
        (["memory://digits/v1", "x", "--include", "*.jpg"], 1, "none of 4 files matches *.jpg"),
        (["memory://digits/v2", "x"], 1, "Did you mean memory://digits/v1?"),
        (["memory://digits/v1", "x", "--inclde", "a"], 2, "unrecognized arguments"),
        (["memory://digits/v1", "no/such/x"], 1, "mkdir -p"),
        (["s4://b/d", "x"], 1, "no engine opens s4://"),
    ],
)
def test_bad_input_is_an_error_message(podferry, digits, tmp_path, monkeypatch, words, code, said):
    monkeypatch.chdir(tmp_path)
    answer = podferry("dataset", "get", *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_help_says_all_options(podferry):
    said = podferry("dataset", "get", "--help")
    assert said.code == 0
    for option in ("--include", "--exclude", "--shard", "--unpack", "--file-mode", "--endpoint"):
        assert option in said.out


def test_it_loads_little(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a").write_bytes(b"1")
    code = (
        "import sys; from podferry.cli.main import main\n"
        f"assert main(['dataset', 'get', {str(tmp_path / 'data')!r}, {str(tmp_path / 'stage')!r}]) == 0\n"
        f"print(*[name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert done.stderr.strip() == ""


def test_problems_name_the_arguments_of_this_command(podferry, tmp_path):
    said = podferry("dataset", "get", "s3:/x", "/proc/x")
    assert said.code == 1
    assert "podferry: URI: not a URI ('s3:/x'). Did you mean s3://x?" in said.err
    assert "podferry: DIRECTORY: the path is reserved for the system" in said.err
    assert "--" not in said.err


@pytest.mark.parametrize(
    ("uri", "expected"),
    [("s3://b/x", ["crc", "fork"]), ("gs://b/x", ["crc", "fork"]), ("az://b/x", ["fork"]), ("{}", [])],
)
def test_workers_share_the_library_of_checksums_and_start_where_a_pool_may_read(
    uri, expected, digits, tmp_path, monkeypatch
):
    done: list[str] = []

    def fork() -> None:
        done.append("fork")
        raise InterruptedError

    monkeypatch.setattr(get, "load_aws_crcs", lambda: done.append("crc"))
    monkeypatch.setattr(get, "prefork", fork)
    with suppress(InterruptedError):
        get.main([uri.format(digits), str(tmp_path / "stage")])
    assert done == expected


@pytest.mark.parametrize(("reached", "code"), [(True, 0), (False, 1)])
def test_a_store_may_restart_during_its_listing_if_it_was_reached(
    reached, code, podferry, digits, tmp_path, monkeypatch
):
    monkeypatch.setattr(get, "SETTINGS", PrefetchSettings(attempts=1, patience_seconds=PATIENCE))
    broken = Fault("entries", error=Unavailable.of("the store does not answer"), after=reached)
    CONTENTS["digits"].faults.append(broken)
    assert podferry("dataset", "get", digits, tmp_path / "stage").code == code

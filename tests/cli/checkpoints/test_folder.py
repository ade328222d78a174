from __future__ import annotations

import os
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podferry.cli.checkpoints.folder import copy_file, copy_folder, describe_folder
from podferry.contract.destination.commit import FORMAT, Commit, CommittedFile
from podferry.contract.uri import parse_uri
from tests.support.moto_server import moto_server
from tests.support.store_calls import KEYS

RUN = parse_uri("s3://results/base/run")


def commit(*objects, world=1, rank_objects=()):
    """A commit of objects in folders; `rank_objects` are one rank's each."""
    files = [CommittedFile(one.partition("/")[2], one, 1, "0" * 32) for one in objects]
    files += [
        CommittedFile(one.partition("/")[2], one, 1, "0" * 32, rank) for rank, one in enumerate(rank_objects)
    ]
    when = datetime(2026, 1, 1, tzinfo=UTC)
    return Commit(FORMAT, 1, "run", "s-2-bb", "s-2", 2, when, tuple(files), "w", world=world)


def commands(made, uri=RUN, endpoint=None):
    return [line.strip() for line in describe_folder(made, uri, endpoint) if line.startswith("  ")]


def test_a_complete_folder_is_one_command():
    assert list(describe_folder(commit("s-2-bb/s/a", "s-2-bb/s/b"), RUN)) == [
        "its folder is complete; to copy it without podferry:",
        "  aws s3 cp --recursive s3://results/base/run/s-2-bb s-2-bb",
    ]


def test_files_elsewhere_are_named_and_have_a_command_each():
    assert list(describe_folder(commit("s-1-aa/s/big", "s-2-bb/s/head"), RUN, "http://x:1")) == [
        "s/big is stored at s3://results/base/run/s-1-aa/s/big",
        "1 file of 2 not in its folder; to copy it without podferry:",
        "  aws s3 cp --recursive --endpoint-url http://x:1 s3://results/base/run/s-2-bb s-2-bb",
        "  aws s3 cp --endpoint-url http://x:1 s3://results/base/run/s-1-aa/s/big s-2-bb/s/big",
    ]


def test_each_rank_has_a_folder():
    shared = commit("s-2-r0/s/a", "s-2-r1/s/b", world=2)
    assert commands(shared) == [
        "aws s3 cp --recursive s3://results/base/run/s-2-r0 s-2-bb",
        "aws s3 cp --recursive s3://results/base/run/s-2-r1 s-2-bb",
    ]
    apart = commit("s-1-aa/old", world=2, rank_objects=("s-2-r0/s/a", "s-2-r1/s/a"))
    assert commands(apart) == [
        "aws s3 cp --recursive s3://results/base/run/s-2-r0 s-2-bb/s-2-r0",
        "aws s3 cp --recursive s3://results/base/run/s-2-r1 s-2-bb/s-2-r1",
        "aws s3 cp s3://results/base/run/s-1-aa/old s-2-bb/old",
    ]


def test_long_lists_are_shortened():
    found = list(describe_folder(commit(*(f"s-1-aa/{number}" for number in range(30))), RUN))
    assert len(found) == 23
    assert found[10] == "and 20 more: see -o json"


def test_names_are_quoted_and_other_stores_have_no_command():
    assert copy_file(parse_uri("gs://b/a b"), "c d") == ["gsutil cp 'gs://b/a b' 'c d'"]
    assert copy_folder(parse_uri("gs://b/a"), "c") == ["mkdir -p c && gsutil -m rsync -r gs://b/a c"]
    for uri in ("az://c/k", "memory://m/k"):
        assert list(describe_folder(commit("s-2-bb/a"), parse_uri(uri))) == []


def committed(directory: Path) -> tuple[Commit, dict[str, bytes]]:
    """A commit with a file in an older folder, and its objects."""
    made = commit("s-1-aa/s/deep er/big", "s-2-bb/s/head")
    return made, {file.object: file.name.encode() for file in made.files}


def restored(directory: Path) -> dict[str, bytes]:
    return {
        path.relative_to(directory).as_posix(): path.read_bytes()
        for path in directory.rglob("*")
        if path.is_file()
    }


def run_all(lines, directory, **environment):
    for line in lines:
        subprocess.run(
            ["/bin/sh", "-c", line],
            cwd=directory,
            check=True,
            capture_output=True,
            env={**os.environ, **environment},
        )


def test_the_commands_copy_local_files(tmp_path):
    made, objects = committed(tmp_path)
    for name, data in objects.items():
        (tmp_path / "run" / name).parent.mkdir(parents=True)
        (tmp_path / "run" / name).write_bytes(data)
    (tmp_path / "out").mkdir()
    run_all(commands(made, parse_uri(str(tmp_path / "run"))), tmp_path / "out")
    assert restored(tmp_path / "out/s-2-bb") == {file.name: file.name.encode() for file in made.files}


@pytest.mark.skipif(shutil.which("aws") is None, reason="the AWS command line is not installed")
def test_the_commands_copy_objects_of_s3(tmp_path):
    made, objects = committed(tmp_path)
    with moto_server("results") as (endpoint, client):
        for name, data in objects.items():
            client.put_object(Bucket="results", Key=f"base/run/{name}", Body=data)
        run_all(commands(made, endpoint=endpoint), tmp_path, AWS_DEFAULT_REGION="us-east-1", **KEYS)
    assert restored(tmp_path / "s-2-bb") == {file.name: file.name.encode() for file in made.files}

"""Program and datasets of commits in tables and in `show`."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

from podferry.contract.code_version import CodeVersion
from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.contract.destination.provenance import DatasetVersion, RunOrigin

DATASETS = (DatasetVersion("s3://data/a", "a" * 64), DatasetVersion("s3://data/b", None, "val"))
ORIGIN = RunOrigin("python -m pkg.train", "/work", "gpu-1", "0" * 12)


def test_lineages_are_listed_with_program_and_dataset_if_one_has_them(podferry, destination):
    assert "PROGRAM" not in podferry("checkpoints", "ls", destination.uri).out
    for lineage, program in (("local.train.1", "/work/train.py"), ("local.train.2", "python -m pkg.train")):
        commit = destination.commit(lineage, {"e-1.pt": b"1"}, datetime.now(UTC), "e-1")
        origin = msgspec.structs.replace(ORIGIN, program=program)
        code = CodeVersion("train:1", "c" * 12)
        commit = msgspec.structs.replace(commit, datasets=DATASETS, origin=origin, code=code)
        destination.write(f"{lineage}/{commit_name(1)}", encode_commit(commit))
    lines = podferry("checkpoints", "ls", destination.uri).out.splitlines()
    assert lines[0].split()[-2:] == ["PROGRAM", "DATASET"]
    cells = [re.split(" {2,}", line)[-2:] for line in lines[1:3]]
    data = "s3://data/a, val=s3://data/b"
    assert cells == [["/work/train.py", data], ["python -m pkg.train in /work on gpu-1", data]]
    assert lines[3].split()[-2:] == ["-", "-"]
    shown = podferry("checkpoints", "show", destination.uri, "local.train.2").out
    assert "\nprogram     python -m pkg.train in /work on gpu-1\n" in shown
    assert f"\nimage       train:1\ncode        {'c' * 12}\n" in shown
    assert f"\ndataset     s3://data/a, sha256 {'a' * 64}\ndataset     val=s3://data/b\n" in shown

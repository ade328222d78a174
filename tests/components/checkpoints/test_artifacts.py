"""What KFP's UI shows of verified checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from kfp import dsl

from podferry.components.checkpoints.verify_checkpoint.artifacts import (
    model_metadata,
    model_uri,
    newest,
    numbers,
    page,
    write_artifacts,
)
from podferry.components.checkpoints.verify_checkpoint.runner import VerifiedLineage
from podferry.contract.destination.commit import Commit

Train = Callable[..., Commit]
OWN = "s3://mlpipeline/v2/artifacts/p/run/verify/model"


@pytest.mark.parametrize(
    ("checkpoint", "taken"),
    [
        ("s3://mlpipeline/models/l/step-1", True),
        ("s3://models/l/step-1", False),
        ("gs://mlpipeline/l/step-1", False),
        ("oss://models/l/step-1", True),
        ("az://models/l/step-1", True),
        ("file:///models/l/step-1", True),
    ],
)
def test_the_uri_is_the_checkpoints_unless_kfp_would_upload_there(checkpoint: str, taken: bool) -> None:
    assert model_uri(OWN, checkpoint) == (checkpoint if taken else OWN)


@pytest.fixture
def verified(train: Train) -> list[VerifiedLineage]:
    one, two = train("a", "run-1"), train("b", "run-1", step=7, doubt="fewer files")
    return [VerifiedLineage("b", "s3://m/b/last-7", two), VerifiedLineage("a", "s3://m/a/last-1", one)]


def test_the_newest_of_all_lineages_and_their_numbers(verified: list[VerifiedLineage]) -> None:
    two, one = verified
    assert newest([one, two]) is newest([two, one]) is two
    assert model_metadata(one)["confidence"] == "sure"
    assert numbers(verified) == {"lineages": 2, "doubtful": 1, "bytes": 14, "newest_step": 7}


def test_the_page_has_a_row_for_each_lineage(verified: list[VerifiedLineage]) -> None:
    found = page(verified)
    (table,) = found.tables
    assert [(row[0], row[2], row[7]) for row in table.rows] == [("b", "7", "doubtful"), ("a", "1", "sure")]
    assert found.verdict.startswith("2 lineages, ")
    assert found.verdict.endswith("doubtful, which is allowed: 1")
    one = page(verified[1:]).verdict
    assert one == "1 lineage, the newest checkpoint of each committed and intact, and sure"


def test_the_artifacts_are_filled_in(verified: list[VerifiedLineage], tmp_path: Path) -> None:
    metrics = dsl.Metrics(name="metrics", uri=str(tmp_path / "metrics"), metadata={})
    model = dsl.Model(name="model", uri=str(tmp_path / "model"), metadata={})
    write_artifacts(verified, str(tmp_path / "report"), metrics, model)
    assert metrics.metadata["lineages"] == 2
    assert model.metadata == {
        "checkpoint": "s3://m/b/last-7",
        "lineage": "b",
        "name": "last",
        "step": 7,
        "commit": 7,
        "confidence": "doubtful",
        "files": 1,
        "bytes": 7,
        "created": "2026-01-01T00:00:00+00:00",
    }
    assert json.loads((tmp_path / "model").read_text()) == model.metadata
    assert "s3://m/b/last-7" in (tmp_path / "report").read_text()

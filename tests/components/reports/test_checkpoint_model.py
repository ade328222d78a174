"""The newest verified checkpoint as a model of KFP."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podferry.components.reports.checkpoint_model import Verified, model_metadata, model_uri, newest, numbers
from podferry.contract.destination.commit import Commit

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


def test_the_newest_of_all_lineages_and_their_numbers(train: Callable[..., Commit]) -> None:
    one = Verified("a", "s3://m/a/last-1", train("a", "run-1"))
    two = Verified("b", "s3://m/b/last-7", train("b", "run-1", step=7, doubt="fewer files"))
    assert newest([one, two]) is newest([two, one]) is two
    assert model_metadata(two) == {
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
    assert model_metadata(one)["confidence"] == "sure"
    assert numbers([one, two]) == {"lineages": 2, "doubtful": 1, "bytes": 14, "newest_step": 7}

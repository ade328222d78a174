from __future__ import annotations

import pytest

from podferry.components.cluster_job.settings import annotations_of, settings_of
from podferry.contract.errors import InvalidSpec


def test_keywords_become_keys() -> None:
    values = {
        "checkpoint_size": "8Gi",
        "dataset": {"train": "s3://a/b", "test": "s3://a/c"},
        "include": {"train": ["*.jpg", "*.png"]},
        "world": 2,
        "secret": None,
    }
    assert settings_of("train_job", values) == {
        "checkpoint-size": "8Gi",
        "dataset.train": "s3://a/b",
        "dataset.test": "s3://a/c",
        "include.train": "*.jpg\n*.png",
        "world": 2,
    }


def test_all_unknown_keywords_are_named_with_what_was_meant() -> None:
    with pytest.raises(InvalidSpec) as caught:
        settings_of("train_job", {"chekpoint_size": "8Gi", "colour": "red"})
    first, second = caught.value.problems
    assert "chekpoint_size: train_job has no such setting" in str(first)
    assert "Did you mean 'checkpoint_size'?" in str(first)
    assert "Known: inject, dataset," in str(second)


def test_annotations_are_text_and_empty_ones_are_left_out() -> None:
    settings = {"world": 2.0, "dataset": "", "checkpoints": "s3://a/b", "inject": True}
    assert annotations_of(settings) == {
        "podferry.io/world": "2",
        "podferry.io/checkpoints": "s3://a/b",
        "podferry.io/inject": "true",
    }

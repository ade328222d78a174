from __future__ import annotations

from podferry.components.cluster_job.settings import annotations_of, setting_problems, settings_of


def test_keywords_become_keys() -> None:
    values = {
        "checkpoint_size": "8Gi",
        "dataset": {"train": "s3://a/b", "test": "s3://a/c"},
        "include": {"train": ["*.jpg", "*.png"]},
        "world": 2,
        "secret": None,
    }
    assert settings_of(values) == {
        "checkpoint-size": "8Gi",
        "dataset.train": "s3://a/b",
        "dataset.test": "s3://a/c",
        "include.train": "*.jpg\n*.png",
        "world": 2,
    }


def test_all_unknown_keywords_are_named_with_what_was_meant() -> None:
    first, second = setting_problems("train_job", settings_of({"chekpoint_size": "8Gi", "colour": "red"}))
    assert "chekpoint_size: train_job has no such setting" in str(first)
    assert "Did you mean 'checkpoint_size'?" in str(first)
    assert "Known: inject, dataset," in str(second)


def test_constants_are_parsed_and_variables_and_channels_are_not() -> None:
    late = {"checkpoints": "s3://$(namespace)/x", "dataset": "{{channel:task=a;name=b;type=String;}}"}
    given = settings_of({**late, "checkpoint_size": "lots", "world": 0, "secret": "Store", "keep_local": 2})
    found = [str(problem) for problem in setting_problems("train_job", given)]
    assert len(found) == 3
    assert found[0].startswith("checkpoint_size: not a quantity ('lots'). Write")
    assert found[1].startswith("world: not an integer of 1 or more ('0'). Write")
    assert found[2].startswith("secret: not a valid Secret name ('Store'). Write")


def test_annotations_are_text_and_empty_ones_are_left_out() -> None:
    settings = {"world": 2.0, "dataset": "", "checkpoints": "s3://a/b", "inject": True}
    assert annotations_of(settings) == {
        "podferry.io/world": "2",
        "podferry.io/checkpoints": "s3://a/b",
        "podferry.io/inject": "true",
    }

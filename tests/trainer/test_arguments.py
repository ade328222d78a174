"""What `ferry` refuses before an agent sees it: what KFP passes by mistake."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from podferry.trainer.arguments import argument_problems, located


def problems(value: object, keyword: str = "dataset", *, kfp_step: bool = False) -> list[str]:
    return list(map(str, argument_problems({keyword: value}, kfp_step=kfp_step)))


@pytest.mark.parametrize("value", [0.1, "0.1", 7, "-1e-3", True, '{"lr": 0.1}', "[1, 2]", ["s3://a/b"]])
def test_a_loop_item_in_place_of_the_dataset_names_the_bug_of_the_local_runner(value: object) -> None:
    (problem,) = problems(value)
    assert problem.startswith(f"the dataset is {value}, which is no URI and no path")
    assert "KFP's local runner replaces outputs inside ParallelFor" in problem
    assert "docs/kfp.md" in problem


def test_a_word_is_a_path_unless_kfp_started_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert problems("resnet50") == problems("durable", "checkpoints", kfp_step=True) == []
    assert "ParallelFor" in problems("resnet50", kfp_step=True)[0]
    (tmp_path / "resnet50").mkdir()
    (tmp_path / "0.1").mkdir()
    assert problems("resnet50", kfp_step=True) == problems("0.1") == []


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("{{channel:task=dataset;name=reference;type=String;}}", "which KFP has not filled in"),
        ("s3://{{$.inputs.parameters['bucket']}}/x", "which KFP has not filled in"),
        ("$(inputs.uri)", "which is not resolved"),
        ("s3://data/$(inputs.name)", "which is not resolved"),
    ],
)
@pytest.mark.parametrize("keyword", ["dataset", "checkpoints", "outputs"])
def test_what_is_left_unresolved_is_named(value: str, reason: str, keyword: str) -> None:
    (problem,) = problems(value, keyword)
    assert problem.startswith(f"the {keyword} is {value}, {reason}. ")


def test_a_text_of_an_outer_pipeline_has_its_own_remedy() -> None:
    (problem,) = problems("{{$.inputs.parameters['pipelinechannel--out']}}/models", "checkpoints")
    assert "Pass the parts, and join them where they are used" in problem


@pytest.mark.parametrize("value", ["s3://a/b#sha256=00", "./data", "/data", Path("data"), "data", "", None])
def test_locations_pass(value: object) -> None:
    assert problems(value) == []


def test_all_of_several_datasets_are_checked() -> None:
    assert [one.partition(" is ")[0] for one in problems({"": "0.1", "test": 2})] == [
        "the dataset",
        "the dataset.test",
    ]


@pytest.mark.parametrize(
    ("metadata", "location"),
    [({"podferry-reference": "s3://a/b#sha256=00", "files": 3.0}, "s3://a/b#sha256=00"), ({}, "s3://root/x")],
)
def test_an_artifact_of_kfp_is_the_dataset_that_it_names(metadata: dict[str, object], location: str) -> None:
    """KFP's `Dataset` has these attributes, and more."""
    artifact = SimpleNamespace(uri="s3://root/x", metadata=metadata, path="/s3/root/x")
    assert located(artifact) == location
    assert located({"": artifact, "test": "s3://c/d"}) == {"": location, "test": "s3://c/d"}
    assert located(Path("data")) == Path("data")
    assert located(None) is None

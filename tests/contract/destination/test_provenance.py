"""What a commit says about the datasets that it was trained on."""

from __future__ import annotations

import pytest

from podferry.contract.destination.provenance import (
    DatasetVersion,
    RunOrigin,
    dataset_changes,
    dataset_location,
)

A, B, C = (DatasetVersion(f"s3://data/{name}", name * 64) for name in "abc")


def named(name: str, dataset: DatasetVersion) -> DatasetVersion:
    return DatasetVersion(dataset.uri, dataset.digest, name)


def test_a_location_has_neither_digest_nor_options():
    assert dataset_location("s3://data/a?engine=fsspec#sha256=" + "0" * 64) == "s3://data/a"
    assert dataset_location("/data/a/") == "file:///data/a"


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([A], [A]),
        ([A], [named("train", A)]),
        ([A], [DatasetVersion("file:///manifests/a.podferry.json", A.digest)]),
        ([DatasetVersion(A.uri)], [A]),
        ([A, named("val", B)], [named("val", B), A]),
        ([], []),
        (None, [A]),
    ],
)
def test_the_same_data_is_no_change(before, now):
    assert dataset_changes(before, now) == []


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ([A], [B]),
        ([A], [named("train", B)]),
        ([named("train", A), named("val", B)], [named("train", B), named("val", A)]),
        ([A, named("val", B)], [A, named("test", C)]),
        ([named("a", A), named("b", B)], [C]),
    ],
)
def test_another_location_is_a_replaced_dataset(before, now):
    changes = dataset_changes(before, now)
    assert any(change.replaced for change in changes)
    assert "s3://data/" in str(changes[0])


@pytest.mark.parametrize(
    ("before", "now", "text"),
    [
        ([A], [DatasetVersion(A.uri, "b" * 64)], "s3://data/a: sha256 aaaaaaaaaaaa before, bbbbbbbbbbbb now"),
        ([A], [A, named("val", B)], "val=s3://data/b was added"),
        ([], [A], "s3://data/a was added"),
        ([A, named("val", B)], [A], "val=s3://data/b is missing"),
    ],
)
def test_other_content_and_other_numbers_are_named_and_replace_nothing(before, now, text):
    (change,) = dataset_changes(before, now)
    assert not change.replaced
    assert str(change) == text


def test_the_output_of_another_run_of_a_step_replaces_nothing():
    runs = [f"s3://root/train/{name}/freeze/data" for name in ("0" * 8 + "-0000" * 3 + "-" + "0" * 12, "x")]
    before, other = DatasetVersion(runs[0], "a" * 64), DatasetVersion(runs[1], "b" * 64)
    again = DatasetVersion(runs[0].replace("0000", "1111"), "b" * 64)
    assert not dataset_changes([before], [again])[0].replaced
    assert dataset_changes([before], [other])[0].replaced


def test_an_origin_is_readable():
    origin = RunOrigin("/work/train.py", "/work", "gpu-1", "0" * 12)
    assert str(origin) == "/work/train.py in /work on gpu-1"

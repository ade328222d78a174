import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.cli.options.named_options import group_by_dataset, split_dataset_name
from podferry.contract.errors import InvalidSpec


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("train=s3://b/d", ("train", "s3://b/d")),
        ("s3://b/d?x=y", ("", "s3://b/d?x=y")),
        ("/data/a=b", ("", "/data/a=b")),
        ("./a=b", ("", "./a=b")),
        ("Train=x", ("", "Train=x")),
        ("a=b=c", ("a", "b=c")),
        ("", ("", "")),
    ],
)
def test_a_name_is_a_label_before_the_first_equals_sign(text, split):
    assert split_dataset_name(text) == split


def test_text_before_an_equals_sign_is_a_name_only_if_a_dataset_has_it():
    given = {
        "dataset": ("s3://b/d", "test=s3://b/t"),
        "include": ("year=2024/*", "*.jpg", "test=*.png"),
        "dataset_path": ("test=/t",),
        "shard": (),
    }
    assert group_by_dataset(given) == {
        "dataset": {"": "s3://b/d", "test": "s3://b/t"},
        "include": {"": ["year=2024/*", "*.jpg"], "test": ["*.png"]},
        "dataset_path": {"test": "/t"},
        "shard": {},
    }


def test_all_duplicate_values_are_reported():
    with pytest.raises(InvalidSpec) as caught:
        group_by_dataset({"dataset": ("a", "b", "x=c"), "dataset_path": ("x=/1", "x=/2")})
    assert [problem.what for problem in caught.value.problems] == [
        "--dataset is given twice for one dataset",
        "--dataset-path is given twice for the dataset x",
    ]


@given(st.text())
def test_nothing_is_lost(text):
    name, value = split_dataset_name(text)
    assert text == (f"{name}={value}" if name else value)

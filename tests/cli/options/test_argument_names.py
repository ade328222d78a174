import pytest

from podferry.cli.options.argument_names import dataset_of_arguments
from podferry.contract.errors import InvalidSpec


def test_the_dataset_of_two_arguments(tmp_path):
    found = dataset_of_arguments({"dataset": "s3://a/b", "dataset_path": str(tmp_path), "shard": "0/2"})
    assert (found.reference, found.path) == ("s3://a/b", str(tmp_path))


def test_everything_that_is_wrong_is_named_by_its_argument():
    with pytest.raises(InvalidSpec) as raised:
        dataset_of_arguments({"dataset": "x y://", "dataset_path": "/proc/x", "unpack": "maybe"})
    named = [one.what.partition(":")[0] for one in raised.value.problems]
    assert sorted(named) == ["--unpack", "DIRECTORY", "URI"]


def test_an_empty_argument_is_named():
    with pytest.raises(InvalidSpec, match="DIRECTORY is empty"):
        dataset_of_arguments({"dataset": "s3://a/b", "dataset_path": ""})

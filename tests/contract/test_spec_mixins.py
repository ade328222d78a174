import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.spec import CheckpointSpec, DatasetMode, DatasetSpec, MountedDataset, OutputSpec
from podferry.contract.uri import Uri


@pytest.mark.parametrize(
    ("name", "variable", "key"),
    [
        ("", "PODFERRY_DATASET", "dataset-size"),
        ("test-2", "PODFERRY_DATASET_TEST_2", "dataset-size.test-2"),
    ],
)
def test_names_derived_from_a_datasets_name(name: str, variable: str, key: str) -> None:
    for dataset in (
        DatasetSpec("s3://b/d", name=name),
        MountedDataset("pvc://claim/d", DatasetMode.SHARE, name=name),
    ):
        assert (dataset.variable, dataset.key("dataset-size")) == (variable, key)


def test_locations_are_values() -> None:
    assert DatasetSpec("s3://b/k#bytes=3").parsed == parse_reference("s3://b/k#bytes=3")
    assert CheckpointSpec("gs://b/c").parsed == Uri("gs", "b", "c")
    assert OutputSpec("gs://b/o").parsed == Uri("gs", "b", "o")


def test_specs_have_only_their_fields() -> None:
    assert not hasattr(DatasetSpec("s3://b/d"), "__dict__"), "thousands are held in a cache"

import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.spec import CheckpointSpec, DatasetSpec, default_path
from podferry.contract.uri import Uri


@pytest.mark.parametrize(
    ("name", "variable", "key", "path"),
    [
        ("", "PODFERRY_DATASET", "dataset-size", "/dev/shm/dataset"),
        ("test-2", "PODFERRY_DATASET_TEST_2", "dataset-size.test-2", "/dev/shm/test-2"),
    ],
)
def test_names_derived_from_a_datasets_name(name: str, variable: str, key: str, path: str) -> None:
    dataset = DatasetSpec("s3://b/d", name=name)
    assert (dataset.variable, dataset.key("dataset-size"), default_path(name)) == (variable, key, path)


def test_locations_are_values() -> None:
    assert DatasetSpec("s3://b/k#bytes=3").parsed == parse_reference("s3://b/k#bytes=3")
    assert CheckpointSpec("gs://b/c").parsed == Uri("gs", "b", "c")

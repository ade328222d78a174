import pytest

from podferry.contract.dataset_volume import (
    DatasetVolume,
    ListedSize,
    dataset_volume_of,
    described_size,
    known_size,
    unknown_size,
)
from podferry.contract.spec import DatasetSpec, Medium, Shard, Unpack

SIZED = "s3://b/d#bytes=1000&files=10"


@pytest.mark.parametrize(
    ("dataset", "listed", "expected"),
    [
        (DatasetSpec(SIZED), None, (1000, 10, "1000 B in 10 files")),
        (DatasetSpec(SIZED), ListedSize(2048, 1234, 4096), (2048, 1234, "2.0 KiB in 1,234 files")),
        (DatasetSpec("s3://b/d#bytes=7"), None, (7, None, "7 B in 0 files")),
        (DatasetSpec(SIZED, shard=Shard(2, 3)), None, (334, 4, "an even shard of 3, 334 B in 4 files,")),
        (DatasetSpec(SIZED, shard=Shard(2, 3)), ListedSize(5, 1, 4096), (5, 1, "5 B in 1 files")),
    ],
)
def test_a_listing_counts_before_the_reference(
    dataset: DatasetSpec, listed: ListedSize | None, expected: tuple[int | None, int | None, str]
) -> None:
    assert (*known_size(dataset, listed), described_size(dataset, listed)) == expected


def test_an_unknown_size_is_not_zero() -> None:
    assert known_size(DatasetSpec("s3://b/d", shard=Shard(0, 2)), None) == (None, None)


@pytest.mark.parametrize(
    ("dataset", "listed", "remedy"),
    [
        (DatasetSpec("s3://b/d", size=5), None, None),
        (DatasetSpec(SIZED), None, None),
        (DatasetSpec("s3://b/d"), ListedSize(1, 1, 4096), None),
        (DatasetSpec("s3://b/d"), None, "Set podferry.io/dataset-size, or use the reference"),
        (DatasetSpec("s3://b/d", name="more"), None, "Set podferry.io/dataset-size.more, or use"),
        (
            DatasetSpec(SIZED, unpack=Unpack.ALWAYS),
            ListedSize(1, 1, 4096),
            "Set podferry.io/dataset-size to the bytes of the unpacked files",
        ),
        (DatasetSpec(SIZED, unpack=Unpack.ALWAYS, size=5), None, None),
    ],
)
def test_the_remedy_for_an_unknown_size(
    dataset: DatasetSpec, listed: ListedSize | None, remedy: str | None
) -> None:
    problems = list(unknown_size(dataset, listed))
    assert len(problems) == (remedy is not None)
    assert all(problem.remedy.startswith(remedy) for problem in problems)


def test_the_label_of_a_volume_has_its_datasets_name() -> None:
    labels = [DatasetVolume(name, Medium.MEMORY, 1, 1, "").what for name in ("", "more")]
    assert labels == ["data volume", "data volume more"]


def test_a_size_below_what_was_listed_is_named() -> None:
    listed = ListedSize(357_000_000, 12_000, 358_612_992)
    small = dataset_volume_of(DatasetSpec("s3://b/d", size=100 << 20), listed).why
    assert small == (
        "podferry.io/dataset-size, too small: 340.5 MiB in 12,000 files take 342.0 MiB in whole pages"
    )
    assert "too small" not in dataset_volume_of(DatasetSpec("s3://b/d", size=1 << 30), listed).why

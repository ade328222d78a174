"""Commits of other datasets in one lineage."""

from __future__ import annotations

import msgspec
import pytest

from podferry.contract.destination.provenance import DatasetVersion
from podferry.contract.errors import Refused
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.dataset_guard import DatasetGuard
from podferry.sidecar.checkpoint.commit.retention import Retention

A, B = (DatasetVersion(f"s3://data/{name}", name * 32) for name in ("aa", "bb"))
NEWER = DatasetVersion(A.uri, "cc" * 32)


def guard(*datasets: DatasetVersion, rank: int | None = None) -> DatasetGuard:
    return DatasetGuard(
        parse_uri("s3://results/digits"), datasets, rank, lambda name, value: f"--{name} {value}"
    )


def trained_on(lineage, *datasets, sequence=9, rank=None):
    commit = lineage.put(sequence, f"{sequence}/w")
    return msgspec.structs.replace(commit, datasets=datasets, rank=rank)


def test_another_dataset_is_refused_with_both_names_and_the_way_out(lineage):
    with pytest.raises(Refused) as caught:
        guard(B).check(trained_on(lineage, A))
    assert str(caught.value) == (
        "s3://results/digits was trained on another dataset (s3://data/aa before, s3://data/bb now). "
        "Give this run a lineage of its own, --lineage NAME; for a first start with the weights of s9, add "
        "--restore s3://results/digits/s9-00 to it."
    )


@pytest.mark.parametrize("datasets", [[A], [NEWER], [A, msgspec.structs.replace(B, name="val")], []])
def test_the_same_location_and_another_number_of_datasets_pass(lineage, datasets):
    guard(*datasets).check(trained_on(lineage, A))


def test_what_a_commit_does_not_record_and_other_ranks_wrote_passes(lineage):
    guard(B).check(lineage.put(9, "9/w"))
    guard(B, rank=1).check(trained_on(lineage, A, rank=0))
    assert guard(B, rank=1).is_foreign(trained_on(lineage, A, rank=1))


async def test_commits_of_another_dataset_are_neither_removed_nor_counted(lineage):
    lineage.collector()
    foreign = {2, 4}
    retention = Retention(lineage.reader, 1, (), lambda commit: commit.sequence in foreign)
    retention.request(lineage.put(5, "e/w"))
    await retention.remove()
    assert lineage.sequences == [2, 4, 5]
    retention.request(lineage.put(6, "f/w"))
    await retention.remove()
    assert lineage.sequences == [2, 4, 6]

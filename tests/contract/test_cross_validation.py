"""Cross-field rules beyond the golden cases: which pods may write a checkpoint together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.annotation_keys import KEYS
from podferry.contract.annotations import read_settings
from podferry.contract.cross_validation import DEPENDENT_KEYS, gang_problems
from podferry.contract.errors import InvalidSpec
from podferry.contract.spec import CheckpointSpec, FerrySpec

CHECKPOINTS = CheckpointSpec("s3://b/c")


@pytest.mark.parametrize(
    ("world", "rank", "said"),
    [
        (4, None, "this pod has no rank (world 4). Train in an Indexed Job"),
        (4, 4, "is not above the pod's rank, which counts from 0 (world 4, rank 4)"),
        (4, 3, None),
        (1, None, None),
        (1, 7, None),  # pods of an Indexed Job that each train on their own
    ],
)
def test_a_gang_needs_a_rank_below_its_world(world: int, rank: int | None, said: str | None) -> None:
    found = [str(one) for one in gang_problems(FerrySpec(checkpoints=CHECKPOINTS, world=world), rank)]
    assert len(found) == (said is not None)
    assert all(said in one for one in found if said)


@given(st.integers(1, 512), st.none() | st.integers(0, 600))
def test_a_world_without_checkpoints_has_no_effect(world: int, rank: int | None) -> None:
    assert list(gang_problems(FerrySpec(world=world), rank)) == []


def test_every_key_of_a_direction_belongs_to_it() -> None:
    stems = {"dataset": ("dataset-",), "checkpoints": ("checkpoint-", "checkpoints-")}
    stems["outputs"] = ("output-", "outputs-")
    for direction, names in DEPENDENT_KEYS.items():
        assert {name for name in KEYS if name.startswith(stems[direction])} <= set(names) <= set(KEYS)


@pytest.mark.parametrize(
    ("checkpoints", "outputs"),
    [
        ("s3://b/runs", "s3a://b/runs/logs"),
        ("sftp://me@nas/runs", "ssh://NAS/runs"),
        ("smb://nas/share/runs", "smb://LAB;me@nas/share"),
        ("webdav://nas:8443/runs", "webdavs://nas:8443/runs"),
    ],
)
def test_one_location_in_two_spellings(checkpoints: str, outputs: str) -> None:
    """Outputs would overwrite what a commit lists."""
    with pytest.raises(InvalidSpec, match="are the same location, or one contains the other"):
        read_settings({"checkpoints": checkpoints, "outputs": outputs})


def test_other_users_and_buckets_are_other_locations() -> None:
    read_settings({"checkpoints": "s3://b/runs", "outputs": "s3a://c/runs"})
    read_settings(
        {
            "checkpoints": "abfss://a@one.dfs.core.windows.net/x",
            "outputs": "abfss://a@two.dfs.core.windows.net/x",
        }
    )

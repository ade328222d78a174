"""What a job records of its datasets in its commits, also after its worker restarts."""

from __future__ import annotations

from pathlib import Path

import pytest

from podferry.contract.code_version import CodeVersion
from podferry.contract.destination.commit import decode_commit
from podferry.contract.destination.provenance import DatasetVersion
from podferry.contract.errors import Refused
from podferry.contract.status import DatasetStatus
from tests.support.checkpoint_job import life


def listed(job, uri, digest="a" * 64):
    job._state.status.datasets = [DatasetStatus(f"{uri}#sha256={digest}", "/d", digest=digest)]
    return job


async def test_commits_record_the_datasets_and_other_ones_are_refused(work, any_rig):
    await life(listed(work(), "s3://data/a"), any_rig, "step-1.pt")
    (commit,) = [
        decode_commit(data, key) for key, data in any_rig.content.objects.items() if "/commits/" in key
    ]
    assert commit.datasets == (DatasetVersion("s3://data/a", "a" * 64),)
    Path(any_rig.control, "journal.json").unlink()
    other = listed(work(), "s3://data/b", "b" * 64)
    with pytest.raises(
        Refused,
        match=r"s3://data/a before.*podferry.io/lineage: NAME; .*podferry.io/restore: memory:",
    ):
        await other.restore(await other.plan())


async def test_a_restarted_worker_knows_them_from_the_journal(work, any_rig):
    first = listed(work(), "s3://data/a")
    await first.restore(await first.plan())
    first._journal.agent.dataset_changes = ["it was"]
    first._journal.save()
    again = work()
    assert again._provenance.datasets == (DatasetVersion("s3://data/a", "a" * 64),)
    assert again._status.dataset_changes == ["it was"]


async def test_new_content_is_reported(work, any_rig):
    await life(listed(work(), "s3://data/a"), any_rig, "step-1.pt")
    Path(any_rig.control, "journal.json").unlink()
    job = listed(work(), "s3://data/a", "b" * 64)
    await job.restore(await job.plan())
    assert job._status.dataset_changes == ["s3://data/a: sha256 aaaaaaaaaaaa before, bbbbbbbbbbbb now"]
    assert "DATASET HAS CHANGED SINCE" in job.summary()


async def test_edited_code_resumes_and_is_named(work, any_rig):
    await life(work(code=CodeVersion("train:1", "a" * 12)), any_rig, "step-1.pt")
    (commit,) = [
        decode_commit(data, key) for key, data in any_rig.content.objects.items() if "/commits/" in key
    ]
    assert commit.code == CodeVersion("train:1", "a" * 12)
    Path(any_rig.control, "journal.json").unlink()
    job = work(code=CodeVersion("train:1", "b" * 12))
    await job.restore(await job.plan())
    assert job.restored.name == "step-1"
    assert job._status.code_changes == ["code aaaaaaaaaaaa before, bbbbbbbbbbbb now"]
    assert "TRAINING CODE HAS CHANGED SINCE: code aaaaaaaaaaaa before" in job.summary()
    assert "set restore to never" in job.summary()
    job._journal.save()
    again = work()
    assert again._status.code_changes == job._status.code_changes


async def test_the_same_code_says_nothing(work, any_rig):
    await life(work(code=CodeVersion("train:1", "a" * 12)), any_rig, "step-1.pt")
    Path(any_rig.control, "journal.json").unlink()
    same = work(code=CodeVersion("train:1", "a" * 12))
    await same.restore(await same.plan())
    assert same._status.code_changes == []

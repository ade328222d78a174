"""A commit's confidence as readers see it: written, confirmed, or derived for commits without one."""

from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import Commit, CommittedFile, Confidence, Doubt, DoubtKind
from podferry.contract.destination.confidence import confirmation_name, confirmed_part, with_confidence

UNPROVEN = Doubt(DoubtKind.UNPROVEN, "nothing shows that all its files exist")


def commit(sequence, names, confidence=None, doubts=(), name=None):
    folder = name or f"step-{sequence}"
    files = tuple(CommittedFile(f"{folder}/{one}", f"{folder}-0/{one}", 1, "0" * 32) for one in names)
    created = datetime(2026, 1, 1, tzinfo=UTC)
    return Commit(
        1, sequence, "fit", f"{folder}-0", folder, sequence, created, files, "a" * 32,
        confidence=confidence, doubts=doubts,
    )  # fmt: skip


def test_a_doubt_stays_until_it_is_confirmed():
    doubtful = commit(3, ["a"], Confidence.DOUBTFUL, (UNPROVEN,))
    assert with_confidence(doubtful, [], set()) == doubtful
    sure = with_confidence(doubtful, [], {(3, None)})
    assert (sure.confidence, sure.doubts) == (Confidence.SURE, ())
    assert not with_confidence(doubtful, [], {(2, None)}).is_sure


def test_a_doubtful_commit_without_a_reason_is_not_sure():
    doubtful = commit(3, ["a"], Confidence.DOUBTFUL)
    assert not with_confidence(doubtful, [], set()).is_sure
    assert with_confidence(doubtful, [], {(3, None)}).is_sure


def test_each_rank_settles_its_own_doubts():
    doubts = tuple(Doubt(DoubtKind.UNPROVEN, "no end", rank) for rank in (0, 1))
    doubtful = commit(3, ["a"], Confidence.DOUBTFUL, doubts)
    assert with_confidence(doubtful, [], {(3, 1)}).doubts == doubts[:1]
    assert with_confidence(doubtful, [], {(3, 0), (3, 1)}).is_sure
    assert with_confidence(doubtful, [], {(3, None)}).is_sure


def test_a_commit_without_a_confidence_is_sure_unless_it_has_fewer_files():
    both, one = commit(1, ["model", "optimizer"]), commit(2, ["model"])
    assert with_confidence(both, [], set()).is_sure
    found = with_confidence(one, [both], set())
    assert found.doubts == (Doubt(DoubtKind.FEWER, "step-1/optimizer of step-1 has no counterpart"),)
    assert with_confidence(one, [both], {(2, None)}).is_sure
    assert with_confidence(one, [commit(1, ["model", "optimizer"], name="best-1")], set()).is_sure
    assert with_confidence(commit(3, ["model"]), [one, both], set()).is_sure


def test_shards_of_a_commit_without_a_confidence_are_counted():
    four = commit(1, [f"model-{shard}-of-4.safetensors" for shard in range(1, 5)])
    two = commit(2, [f"model-{shard}-of-4.safetensors" for shard in range(1, 3)])
    (doubt,) = with_confidence(two, [four], set()).doubts
    assert doubt.reason == "step-1/model-3-of-4.safetensors of step-1 has no counterpart"


@pytest.mark.parametrize(("sequence", "rank"), [(1, None), (12, 0), (999_999_999_999, 17)])
def test_names_of_confirmations_are_read_back(sequence, rank):
    name = confirmation_name(sequence, rank).rpartition("/")[2]
    assert confirmed_part(name) == (sequence, rank)


@pytest.mark.parametrize("name", ["1.json", "000000000001-.json", "000000000001.json.tmp", "notes/"])
def test_other_names_confirm_nothing(name):
    assert confirmed_part(name) is None

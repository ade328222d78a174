"""Which commit is restored, which ones are passed over, and what is said if none can be."""

from __future__ import annotations

import tarfile
from pathlib import Path

import msgspec
import pytest

from podferry.contract.destination.commit import commit_name, encode_commit
from podferry.contract.destination.confidence import Confirmer
from podferry.contract.errors import NotFound
from podferry.contract.uri import parse_uri
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.sidecar.checkpoint.commit.confirmation import confirm
from podferry.sidecar.checkpoint.commit.lineage_store import LineageStore
from podferry.sidecar.checkpoint.restore.choice import (
    MAX_PASSED_OVER,
    RestoreChoice,
    describe_passed_over,
    restore_source_of,
)
from podferry.sidecar.checkpoint.restore.restore import restore
from podferry.storage.local.store import LocalStore
from podferry.storage.memory.store import CONTENTS
from podferry.storage.store import StoreConfig
from tests.support.lineage_site import Lineage

DOUBT = "its end is not proven"
REASON = f"doubtful: {DOUBT}"
WRITTEN = Path(__file__).parents[3] / "data" / "written-by-0.1.0.tar.gz"


@pytest.fixture
def lineage(monkeypatch):
    """Two sure commits, then two doubtful ones, the second of a name that a sure one has."""
    made = Lineage()
    made.put(1, "a/w", name="epoch-1")
    made.put(2, "b/w", name="last")
    made.put(3, "c/w", name="epoch-2", doubt=DOUBT)
    made.put(4, "d/w", name="last", doubt=DOUBT)
    monkeypatch.setitem(CONTENTS, "remote", made.store.content)
    return made


async def choose(lineage, setting):
    """The candidates of a setting, and the choice."""
    source = await restore_source_of(setting, lineage.reader, StoreConfig())
    choice = RestoreChoice(source, await source.reader.history(source.known))
    return [commit.sequence async for commit in choice.candidates()], choice


async def test_auto_takes_sure_ones_and_names_what_it_passes_over(lineage):
    found, choice = await choose(lineage, "auto")
    assert found == [2, 1]
    seen = [(one.name, one.sequence, one.reason) for one in choice.passed_over]
    assert seen == [("last", 4, REASON), ("epoch-2", 3, REASON)]


async def test_latest_takes_either_kind(lineage):
    found, choice = await choose(lineage, "latest")
    assert (found, choice.passed_over) == ([4, 3, 2, 1], ())


@pytest.mark.parametrize(("setting", "sequences"), [("last", [4, 2]), ("epoch-2", [3]), ("epoch-2-00", [3])])
async def test_a_name_means_its_newest_version_of_either_kind(lineage, setting, sequences):
    found, choice = await choose(lineage, setting)
    assert (found, choice.passed_over) == (sequences, ())


async def test_a_uri_of_a_lineage_is_like_auto_and_one_of_a_checkpoint_is_that_one(lineage):
    assert (await choose(lineage, "memory://remote/base/run"))[0] == [2, 1]
    assert (await choose(lineage, "memory://remote/base/run/epoch-2-00"))[0] == [3]


async def test_a_confirmed_commit_is_sure(lineage):
    commit = await lineage.reader.read(4)
    await confirm(lineage.reader.store, commit, Confirmer.PERSON, "it loads")
    assert (await choose(lineage, "auto"))[0] == [4, 2, 1]


async def outcome(lineage, setting, tmp_path):
    (tmp_path / "target").mkdir(exist_ok=True)
    source = await restore_source_of(setting, lineage.reader, StoreConfig())
    return await restore(source, tmp_path / "target", tmp_path / "staging")


async def test_a_damaged_sure_one_is_passed_over_too(lineage, tmp_path):
    del lineage.objects["base/run/b/w"]
    found = await outcome(lineage, "auto", tmp_path)
    assert found.commit.sequence == 1
    assert [one.sequence for one in found.passed_over] == [4, 3, 2]
    assert found.passed_over[-1].reason.startswith("damaged: there is no object memory://remote/base/run/b/w")


async def test_an_unreadable_commit_is_passed_over_by_its_number(lineage, tmp_path):
    lineage.objects[f"base/run/{commit_name(4)}"] = b"{"
    found = await outcome(lineage, "auto", tmp_path)
    assert [one.name for one in found.passed_over] == ["commit 4", "epoch-2"]
    assert found.passed_over_count == 2


def none_sure(lineage):
    for number in (1, 2):
        lineage.put(number, f"{number}/w", doubt=DOUBT)


async def test_auto_finds_nothing_if_none_is_sure(lineage, tmp_path):
    none_sure(lineage)
    found = await outcome(lineage, "auto", tmp_path)
    assert (found.commit, [one.sequence for one in found.passed_over]) == (None, [4, 3, 2, 1])
    assert (await outcome(lineage, "latest", tmp_path)).commit.sequence == 4


async def test_a_warm_start_that_finds_none_sure_says_which_word_takes_one(lineage, tmp_path):
    none_sure(lineage)
    uri = "memory://remote/base/run"
    with pytest.raises(NotFound, match="is proven complete") as refused:
        await outcome(lineage, uri, tmp_path)
    assert f"{uri}/last-00" in refused.value.problems[0].remedy
    assert f"last ({REASON})" in refused.value.problems[0].measured
    assert (await outcome(lineage, f"{uri}/last-00", tmp_path)).commit.sequence == 4


async def test_a_required_one_that_is_damaged_is_reported_with_the_damage(lineage, tmp_path):
    for number in range(1, 5):
        lineage.objects[f"base/run/{commit_name(number)}"] = b"{"
    with pytest.raises(NotFound, match="is not a valid commit"):
        await outcome(lineage, "latest", tmp_path)


async def test_only_so_many_are_listed_and_the_rest_is_counted(lineage):
    for number in range(5, 105):
        lineage.put(number, "x/w", doubt=DOUBT)
    _, choice = await choose(lineage, "auto")
    assert (len(choice.passed_over), choice.passed_over_count) == (MAX_PASSED_OVER, 102)
    assert choice.passed_over[0].sequence == 104
    assert describe_passed_over(choice.passed_over, 102).endswith(f"s100 ({REASON}) and 97 more")


@pytest.fixture
def golden(tmp_path):
    """The commits that podferry 0.1.0 wrote."""
    with tarfile.open(WRITTEN) as archive:
        archive.extractall(tmp_path, filter="data")
    store = LocalStore(parse_uri(f"file://{tmp_path}/destination"))
    return CommitReader(LineageStore(store, "golden.run")), store


async def test_auto_takes_the_newest_commit_of_an_earlier_version(golden, tmp_path):
    reader, _ = golden
    newest = await reader.read((await reader.sequences())[-1])
    assert newest.confidence is None
    source = await restore_source_of("auto", reader, StoreConfig())
    (tmp_path / "target").mkdir()
    found = await restore(source, tmp_path / "target", tmp_path / "staging")
    assert (found.commit.sequence, found.passed_over) == (newest.sequence, ())


async def test_an_earlier_versions_commit_with_fewer_files_is_passed_over(golden, tmp_path):
    reader, store = golden
    before = await reader.read(2)
    fewer = msgspec.structs.replace(before, sequence=4, name="checkpoint-4", files=before.files[:1])
    await store.write(f"golden.run/{commit_name(4)}", encode_commit(fewer))
    source = await restore_source_of("auto", reader, StoreConfig())
    (tmp_path / "target").mkdir()
    found = await restore(source, tmp_path / "target", tmp_path / "staging")
    (passed,) = found.passed_over
    assert (found.commit.sequence, passed.sequence) == (3, 4)
    assert passed.reason == "doubtful: checkpoint-2/weights.bin of checkpoint-2 has no counterpart"


@pytest.fixture
def mixed():
    """A state, a doubtful one, and what was written next to them, all of it newer."""
    made = Lineage()
    made.put(1, "a/epoch_1.pt")
    made.put(2, "b/epoch_2.pt", doubt=DOUBT)
    made.put(3, "c/metrics.json", name="metrics")
    made.put(4, "d/notes.txt", name="notes")
    return made


@pytest.mark.parametrize(
    ("setting", "sequences", "passed_over"),
    [("auto", [1], [2]), ("latest", [2, 1], []), ("metrics", [3], [])],
)
async def test_metrics_are_restored_by_name_alone(mixed, setting, sequences, passed_over):
    found, choice = await choose(mixed, setting)
    assert (found, [one.sequence for one in choice.passed_over]) == (sequences, passed_over)


async def test_a_lineage_of_doubtful_states_does_not_fall_back_to_metrics(mixed):
    mixed.put(1, "a/epoch_1.pt", doubt=DOUBT)
    assert (await choose(mixed, "auto"))[0] == []


async def test_documents_are_the_checkpoints_of_a_lineage_without_states(mixed):
    for number in (1, 2):
        mixed.put(number, f"{number}/model_{number}.json")
    found, choice = await choose(mixed, "auto")
    assert (found, choice.passed_over_count) == ([4, 2, 1], 0)

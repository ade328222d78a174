import json
import re
from datetime import UTC, datetime

import msgspec
import pytest

from podferry.contract.destination.agent_notes import FORMAT, AgentNote, DrainPhase, note_name
from podferry.contract.destination.commit import COMMITS, commit_name
from podferry.contract.destination.tombstones import Tombstone, tombstone_name
from podferry.contract.versioned_json import encode_document
from podferry.storage.memory.store import CONTENTS

FIT, TUNE = "team.job.fit", "team.job.tune"
WHEN = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def objects(destination):
    """The objects at the destination: three commits and an abandoned upload."""
    destination.commit(FIT, {"step-300.pt": b"c" * 4000}, datetime.now(UTC), "step-300")
    destination.write(f"{FIT}/step-400-0123456789ab/step-400.pt", b"d" * 1500)
    destination.write(f"{FIT}/.podferry/writer.json", msgspec.json.encode({"writer": "w1", "since": WHEN}))
    return CONTENTS[destination.uri.bucket].objects


def end(destination):
    note = encode_document(AgentNote(FORMAT, "w1", DrainPhase.ENDED, WHEN))
    destination.write(f"{FIT}/{note_name('w1')}", note)


def commits(objects):
    return sorted(key.removeprefix("team/") for key in objects if f"/{COMMITS}/" in key)


def test_gc_golden(podferry, destination, golden, objects):
    before = dict(objects)
    end(destination)
    said = podferry("checkpoints", "gc", destination.uri, "--keep", 1, "--uncommitted")
    assert said.code == 0
    golden("checkpoints-gc", said.out + said.err)
    del objects[f"team/{FIT}/{note_name('w1')}"]
    assert objects == before


def test_a_dry_run_reports_what_yes_removes(podferry, destination, objects):
    words = ["checkpoints", "gc", destination.uri, "--keep", 1, "--uncommitted"]
    end(destination)
    preview, done = podferry(*words), podferry(*words, "--yes")
    assert (preview.code, done.code, preview.out) == (0, 0, done.out)
    assert "would be removed; nothing has been changed: add --yes" in preview.err
    assert re.fullmatch(r"removed: \S+ KiB\n", done.err)
    assert commits(objects) == [f"{FIT}/{commit_name(3)}", f"{TUNE}/{commit_name(1)}"]
    assert podferry("checkpoints", "verify", destination.uri, "--deep").code == 0
    assert not any("step-100" in key or "step-400" in key for key in objects)
    again = podferry(*words, "--yes")
    assert again == (0, "", "nothing to remove\n")


def test_only_the_requested_commits_are_removed(podferry, destination, objects):
    assert (
        podferry("checkpoints", "gc", destination.uri, TUNE, "--keep", 1, "--yes").err
        == "nothing to remove\n"
    )
    assert podferry("checkpoints", "gc", destination.uri / FIT, "--keep", 2, "--yes").code == 0
    assert commits(objects) == [*(f"{FIT}/{commit_name(n)}" for n in (2, 3)), f"{TUNE}/{commit_name(1)}"]
    assert any("step-400" in key for key in objects)


def test_uncommitted_data_stays_while_an_agent_may_be_active(podferry, destination, objects):
    words = ["checkpoints", "gc", destination.uri, FIT, "--uncommitted"]
    for more in ([], ["--yes"]):
        said = podferry(*words, *more)
        assert said.code == 1
        assert "an agent may be using team.job.fit (w1, since 2026-01-01" in said.err
        assert "then add --force." in said.err
        assert any("step-400" in key for key in objects)
    assert podferry(*words, "--yes", "--force").code == 0
    assert not any("step-400" in key for key in objects)
    assert len(commits(objects)) == 4


def test_a_lineage_without_a_commit_has_leftovers_too(podferry, destination, objects):
    destination.write("team.job.dead/.podferry/writers/w9.json", b"{}")
    destination.write("team.job.dead/step-1-00/w", b"1")
    words = ["checkpoints", "gc", destination.uri, "team.job.dead", "--uncommitted", "--force"]
    assert "step-1-00" in podferry(*words).out
    assert podferry(*words, "--yes").code == 0
    assert not any("team.job.dead" in key for key in objects)


def test_an_unreadable_lineage_does_not_stop_the_others(podferry, destination, objects):
    destination.write(f"{TUNE}/{commit_name(2)}", b'{"format": 3}')
    said = podferry("checkpoints", "gc", destination.uri, "--keep", 1, "--yes", "-o", "json")
    assert said.code == 1
    fit, tune = json.loads(said.out)
    assert (fit["lineage"], fit["removed"], [item["sequence"] for item in fit["items"]]) == (
        FIT,
        True,
        [1, 2],
    )
    assert (tune["items"], len(tune["problems"])) == ([], 1)
    assert "written by a later podferry" in said.err
    assert len(commits(objects)) == 3


def test_leftovers_of_a_killed_removal_are_reported_once_and_removed(podferry, destination, objects):
    record = Tombstone(1, "dead", {}, {"step-400-0123456789ab/step-400.pt": 1500})
    destination.write(f"{FIT}/{tombstone_name('dead')}", encode_document(record))
    end(destination)
    words = ["checkpoints", "gc", destination.uri, FIT, "--keep", 3, "--uncommitted"]
    preview, done = podferry(*words), podferry(*words, "--yes")
    assert preview.out == done.out
    assert re.search(r"left by an interrupted removal +- +1 +1.5 KiB  -\n", preview.out)
    assert preview.out.count("1.5 KiB") == 1
    assert not any("step-400" in key or "/removing/" in key for key in objects)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        ([], 2, "specify what to remove"),
        (["--keep", 0], 2, "0 is not in the range"),
        (["--keep", 1, "--force"], 2, "--force works only with --uncommitted"),
        (["team.job.fti", "nobody", "--keep", 1], 1, "Did you mean 'team.job.fit'?"),
    ],
)
def test_usage_errors(podferry, destination, words, code, message):
    said = podferry("checkpoints", "gc", destination.uri, *words)
    assert said.code == code
    assert message in said.err


def test_an_argument_after_a_lineage_uri_is_an_error(podferry, destination):
    said = podferry("checkpoints", "gc", destination.uri / FIT, "step-100", "--keep", 1)
    assert said.code == 1
    assert f"unexpected: step-100 ({destination.uri / FIT} is a lineage itself)" in said.err

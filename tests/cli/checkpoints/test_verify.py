import json
import re
from datetime import UTC, datetime

import msgspec

from podferry.contract.destination.commit import Commit, commit_name, encode_commit
from podferry.contract.exit_codes import EXIT_DOUBTFUL
from podferry.sidecar.checkpoint.commit.commit_reader import CommitReader
from podferry.storage.memory.store import CONTENTS

FIT = "team.job.fit"


def test_verify_golden(podferry, destination, golden):
    for words in ([], ["--deep"]):
        said = podferry("checkpoints", "verify", destination.uri, *words)
        assert (said.code, said.err) == (0, "")
        golden("checkpoints-verify", said.out)


def test_damage_is_found_by_size_and_by_content(podferry, destination):
    name = re.search(r"step-200-\w+", podferry("checkpoints", "ls", destination.uri, FIT).out)
    assert name
    data = f"{FIT}/{name[0]}/step-200.pt"
    destination.write(data, b"B" * 3000)
    assert podferry("checkpoints", "verify", destination.uri).code == 0
    said = podferry("checkpoints", "verify", destination.uri, FIT, "--deep")
    assert said.code == 1
    assert re.search(r"team.job.fit, commit 2: step-200.pt is damaged \(xxh128 ", said.err)
    destination.write(data, b"b")
    assert "has the wrong size" in podferry("checkpoints", "verify", destination.uri).err
    destination.delete(data)
    assert "is missing" in podferry("checkpoints", "verify", destination.uri).err


def test_all_problems_come_at_once_and_old_ones_do_not_fail(podferry, destination):
    destination.write(f"{FIT}/{commit_name(1)}", b"{")
    said = podferry("checkpoints", "verify", destination.uri)
    assert (said.code, said.err.count("\n")) == (0, 1)
    assert "not readable" in said.out
    tune = json.loads(podferry("checkpoints", "show", destination.uri, "team.job.tune", "-o", "json").out)
    for file in tune["files"]:
        destination.delete(f"team.job.tune/{file['object']}")
    said = podferry("checkpoints", "verify", destination.uri)
    assert (said.code, said.err.count("\n")) == (1, 3)


def test_what_an_agent_removes_meanwhile_is_not_damaged(podferry, destination, monkeypatch):
    real = CommitReader.missing_objects

    async def missing_objects(reader, commit):
        if (reader.store.lineage, commit.sequence) == (FIT, 1):
            await reader.store.delete([commit_name(1), *(file.object for file in commit.files)])
        return await real(reader, commit)

    monkeypatch.setattr(CommitReader, "missing_objects", missing_objects)
    said = podferry("checkpoints", "verify", destination.uri, FIT)
    assert (said.code, said.err) == (0, "")
    assert "step-200" in said.out
    assert "step-100" not in said.out


def test_verify_reads_a_file_of_several_commits_once(podferry, destination):
    first = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "step-100", "-o", "json").out)
    document = {**first, "sequence": 3, "checkpoint": "step-300-0123456789ab", "name": "step-300"}
    destination.write(f"{FIT}/{commit_name(3)}", encode_commit(msgspec.convert(document, Commit)))
    data = f"{FIT}/{first['files'][0]['object']}"
    destination.write(data, b"A" * 3000)
    calls = CONTENTS[destination.uri.bucket].calls
    calls.clear()
    said = podferry("checkpoints", "verify", destination.uri, FIT, "--deep")
    assert said.code == 1
    assert re.findall(r"commit (\d): step-100.pt is damaged", said.err) == ["3", "1"]
    assert calls.count(("read", data)) == 1


def test_a_doubtful_newest_checkpoint_has_a_code_of_its_own(podferry, destination):
    destination.doubtful()
    said = podferry("checkpoints", "verify", destination.uri)
    assert said.code == EXIT_DOUBTFUL
    assert re.search(r"team.job.fit +3 +300 +2.9 KiB +intact +doubtful +step-300-", said.out)
    assert "the newest checkpoint of team.job.fit, step-300, is doubtful (unproven: nothing shows" in said.err
    assert f"podferry checkpoints confirm {destination.uri} {FIT} step-300." in said.err
    assert podferry("checkpoints", "verify", destination.uri, "team.job.tune").code == 0
    # An older doubtful one fails nothing, and damage weighs more than a doubt.
    destination.commit(FIT, {"step-400.pt": b"d"}, datetime.now(UTC), "step-400")
    assert podferry("checkpoints", "verify", destination.uri).code == 0
    made = destination.doubtful("step-500")
    destination.delete(f"{FIT}/{made.files[0].object}")
    said = podferry("checkpoints", "verify", destination.uri, "-o", "json")
    assert said.code == 1
    verdict = json.loads(said.out)[0]
    assert (verdict["state"], verdict["confidence"]) == ("damaged", "doubtful")
    assert verdict["doubts"][0]["kind"] == "unproven"


def test_metrics_are_not_the_newest_checkpoint(podferry, destination):
    """Doubtful or damaged, metrics decide neither what `verify` answers nor what `ls` and `show` name."""
    destination.commit(FIT, {"metrics.json": b"{}"}, datetime.now(UTC), "metrics", "its end is not proven")
    assert podferry("checkpoints", "verify", destination.uri).code == 0
    listed = json.loads(podferry("checkpoints", "ls", destination.uri, "-o", "json").out)
    assert {one["lineage"]: one["newest"]["name"] for one in listed}[FIT] == "step-200"
    shown = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "-o", "json").out)
    assert shown["name"] == "step-200"
    named = podferry("checkpoints", "show", destination.uri, FIT, "metrics", "-o", "json")
    assert json.loads(named.out)["name"] == "metrics"


def test_the_newest_document_is_the_checkpoint_of_a_lineage_without_states(podferry, destination):
    for step in (1, 2):
        name = f"model_{step}"
        destination.commit("boosted", {f"{name}.json": b"{}"}, datetime.now(UTC), name)
    destination.commit("boosted", {"plot.png": b"p"}, datetime.now(UTC), "plot")
    shown = json.loads(podferry("checkpoints", "show", destination.uri, "boosted", "-o", "json").out)
    assert shown["name"] == "model_2"

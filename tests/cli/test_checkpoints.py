import json
import re
from datetime import UTC, datetime, timedelta

import msgspec
import pytest
import stamina
import xxhash

from podferry.contract.destination.commit import Commit, CommittedFile, commit_name, encode_commit
from podferry.contract.errors import Unavailable
from podferry.storage.memory.store import CONTENTS, Fault

FIT = "team.job.fit"


def test_ls_golden(podferry, destination, golden):
    said = podferry("checkpoints", "ls", destination.uri, FIT)
    assert (said.code, said.err) == (0, "")
    golden("checkpoints-ls-lineage", said.out)
    said = podferry("checkpoints", "ls", destination.uri)
    assert said.code == 0
    golden("checkpoints-ls", said.out)


def test_show_golden(podferry, destination, golden):
    said = podferry("checkpoints", "show", destination.uri, "team.job.tune")
    assert (said.code, said.err) == (0, "")
    text = said.out.replace(str(destination.uri), "memory://ck/team")
    golden("checkpoints-show", re.sub(r"(?m)^(created +)[0-9]{4}-\S+\+00:00$", r"\1(when)", text))


def test_verify_golden(podferry, destination, golden):
    for words in ([], ["--deep"]):
        said = podferry("checkpoints", "verify", destination.uri, *words)
        assert (said.code, said.err) == (0, "")
        golden("checkpoints-verify", said.out)


def test_json_output(podferry, destination):
    found = json.loads(podferry("checkpoints", "ls", destination.uri, "-o", "json").out)
    assert [(one["lineage"], one["commits"], one["newest"]["step"]) for one in found] == [
        (FIT, 2, 200),
        ("team.job.tune", 1, 7),
    ]
    [fit] = json.loads(podferry("checkpoints", "ls", destination.uri, FIT, "-o", "json").out)
    assert [commit["name"] for commit in fit["commits"]] == ["step-200", "step-100"]
    shown = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "step-100", "-o", "json").out)
    assert (shown["sequence"], shown["run"], len(shown["files"])) == (1, "run-7", 1)
    verdicts = json.loads(podferry("checkpoints", "verify", destination.uri, "-o", "json").out)
    assert {verdict["state"] for verdict in verdicts} == {"whole"}


@pytest.mark.parametrize("verb", ["ls", "show", "verify"])
def test_a_uri_may_hold_the_lineage(podferry, destination, verb):
    apart = podferry("checkpoints", verb, destination.uri, FIT)
    assert apart == podferry("checkpoints", verb, destination.uri / FIT)
    assert apart.code == 0


def test_a_uri_that_is_both_is_a_destination(podferry, destination):
    destination.commit(f"{FIT}/inner", {"w": b"1"}, datetime.now(UTC), "w-1")
    out = podferry("checkpoints", "ls", destination.uri / FIT).out
    assert [line.split()[0] for line in out.splitlines()] == ["LINEAGE", "inner"]


@pytest.mark.parametrize("word", ["step-100", "step-100.pt", "step-100/"])
def test_a_checkpoint_is_found_by_name_file_or_folder(podferry, destination, word):
    out = podferry("checkpoints", "show", destination.uri, FIT, word).out
    folder = re.search(r"step-100-[0-9a-f]{12}", out)
    assert folder
    assert podferry("checkpoints", "show", destination.uri / FIT, folder[0]).out == out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["team.job.fti"], "Did you mean 'team.job.fit'?"),
        ([FIT, "step-20"], "Did you mean 'step-200'?"),
        ([], "the lineage is not specified (2 below"),
        ([FIT, "step-100", "more"], "unexpected extra argument (more)"),
    ],
)
def test_a_missing_checkpoint_is_an_error_message(podferry, destination, words, said):
    answer = podferry("checkpoints", "show", destination.uri, *words)
    assert answer.code != 0
    assert said in answer.err


def test_an_empty_destination_suggests_the_nearest(podferry, destination):
    answer = podferry("checkpoints", "ls", destination.uri.root / "taem")
    assert answer.code == 1
    assert f"Did you mean {destination.uri}?" in answer.err


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


def test_a_newest_commit_of_a_later_podferry_is_never_skipped(podferry, destination, tmp_path):
    destination.write(f"{FIT}/{commit_name(3)}", b'{"format": 2}')
    for words in (["ls"], ["show", FIT], ["verify"], ["restore", FIT, "--to", tmp_path / "out"]):
        verb, *rest = words
        said = podferry("checkpoints", verb, destination.uri, *rest)
        assert said.code == 1, words
        assert "written by a later podferry (format 2" in said.err
        assert "Upgrade podferry." in said.err
    assert not (tmp_path / "out").exists()


def test_restore_downloads_the_newest(podferry, destination, tmp_path):
    target = tmp_path / "out"
    said = podferry("checkpoints", "restore", destination.uri, FIT, "--to", target)
    assert (said.code, said.out) == (0, f"{target}/step-200.pt\n")
    assert (target / "step-200.pt").read_bytes() == b"b" * 3000
    assert [path.name for path in target.iterdir()] == ["step-200.pt"]
    again = podferry("checkpoints", "restore", destination.uri / FIT, "step-200", "--to", target)
    assert again.code == 0


def test_restore_never_overwrites_a_different_file(podferry, destination, tmp_path):
    (tmp_path / "step-100.pt").write_bytes(b"mine")
    said = podferry("checkpoints", "restore", destination.uri, FIT, "step-100.pt", "--to", tmp_path)
    assert said.code == 1
    assert "or restore to another directory" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["step-100.pt"]
    assert (tmp_path / "step-100.pt").read_bytes() == b"mine"


def test_restore_skips_damage_only_without_a_name(podferry, destination, tmp_path):
    shown = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "-o", "json").out)
    destination.write(f"{FIT}/{shown['files'][0]['object']}", b"x" * 3000)
    said = podferry("checkpoints", "restore", destination.uri, FIT, "--to", tmp_path / "a")
    assert (said.code, said.out) == (0, f"{tmp_path}/a/step-100.pt\n")
    assert "damaged" in said.err
    said = podferry("checkpoints", "restore", destination.uri, FIT, "step-200", "--to", tmp_path / "b")
    assert (said.code, said.out, (tmp_path / "b").exists()) == (1, "", False)


def test_files_of_an_earlier_checkpoint_are_reported(podferry, destination):
    first = json.loads(podferry("checkpoints", "show", destination.uri, FIT, "step-100", "-o", "json").out)
    document = {**first, "sequence": 3, "checkpoint": "step-300-0123456789ab", "name": "step-300"}
    destination.write(f"{FIT}/{commit_name(3)}", encode_commit(msgspec.convert(document, Commit)))
    said = podferry("checkpoints", "show", destination.uri, FIT)
    assert f"step-100.pt is stored at {destination.uri}/{FIT}/{first['checkpoint']}/step-100.pt" in said.err


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


def gang(destination, *ranks):
    """Commit a checkpoint in which each rank has its own `state.bin`."""
    commit = destination.commit(
        "team.job.gang", {"s/all.bin": b"shared"}, datetime.now(UTC) - timedelta(hours=3), "s-9"
    )
    files = [*commit.files]
    for rank in ranks:
        data, place = b"of %d" % rank, f"{commit.checkpoint}/{rank}/state.bin"
        destination.write(f"team.job.gang/{place}", data)
        digest = xxhash.xxh3_128_hexdigest(data)
        files.append(CommittedFile("s/state.bin", place, len(data), digest, rank))
    ranked = msgspec.structs.replace(commit, files=tuple(files), world=len(ranks))
    destination.write(f"team.job.gang/{commit_name(1)}", encode_commit(ranked))


def test_show_lists_ranks_if_files_differ(podferry, destination, golden):
    gang(destination, 0, 1)
    out = podferry("checkpoints", "show", destination.uri, "team.job.gang").out
    golden("checkpoints-show-ranks", out.partition("\n\n")[2])
    assert podferry("checkpoints", "verify", destination.uri, "team.job.gang", "--deep").code == 0


def test_restore_downloads_the_files_of_a_rank(podferry, destination, tmp_path):
    gang(destination, 0, 1)
    restore = ("checkpoints", "restore", destination.uri, "team.job.gang")
    said = podferry(*restore, "--rank", 1, "--to", tmp_path / "one")
    assert (tmp_path / "one/s/state.bin").read_bytes() == b"of 1"
    assert "--rank" not in said.err
    said = podferry(*restore, "--to", tmp_path / "any")
    assert (said.code, said.out) == (0, f"{tmp_path}/any/s\n")
    assert (tmp_path / "any/s/state.bin").read_bytes() == b"of 0"
    assert "are the lowest rank's" in said.err
    assert "--rank" in said.err


def test_restore_resumes_after_the_store_stopped_responding(podferry, destination, tmp_path):
    content = CONTENTS[destination.uri.bucket]
    down = Fault("read", "*optimizer.bin", times=999, error=Unavailable.of("no route", remedy="Try again"))
    content.faults.append(down)
    restore = ("checkpoints", "restore", destination.uri, "team.job.tune", "--to", tmp_path / "out")
    with stamina.set_testing(True, attempts=2, cap=True):
        said = podferry(*restore)
    assert said.code == 1
    assert "no route" in said.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == [".podferry-restoring"]
    assert "run the same command again to resume" in said.err
    content.faults.remove(down)
    content.calls.clear()
    assert podferry(*restore).code == 0
    assert [name.rpartition("/")[2] for call, name in content.calls if call == "read"][-1:] == [
        "optimizer.bin"
    ]
    assert not any(name.endswith("model.bin") for call, name in content.calls if call == "read")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["epoch-7"]


def test_a_restore_without_any_file_leaves_nothing(podferry, destination, tmp_path):
    CONTENTS[destination.uri.bucket].faults.append(
        Fault("read", "*step-200.pt", times=999, error=Unavailable.of("no route"))
    )
    with stamina.set_testing(True, attempts=2, cap=True):
        said = podferry("checkpoints", "restore", destination.uri, FIT, "--to", tmp_path / "out")
    assert said.code == 1
    assert "run the same command again" not in said.err
    assert not (tmp_path / "out").exists()

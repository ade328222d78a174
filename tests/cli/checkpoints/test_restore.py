import json

import stamina

from podferry.contract.errors import Unavailable
from podferry.storage.memory.store import CONTENTS, Fault

FIT = "team.job.fit"


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


def test_restore_downloads_the_files_of_a_rank(podferry, destination, tmp_path):
    destination.commit_gang(0, 1)
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


def test_restore_takes_the_newest_sure_one_and_names_what_it_passed_over(podferry, destination, tmp_path):
    destination.doubtful()
    restore = ("checkpoints", "restore", destination.uri, FIT)
    said = podferry(*restore, "--to", tmp_path / "sure")
    assert (said.code, said.out) == (0, f"{tmp_path}/sure/step-200.pt\n")
    assert "passed over: step-300 (doubtful: nothing shows where its file ends)" in said.err
    for number, word in enumerate(("latest", "step-300")):
        said = podferry(*restore, word, "--to", tmp_path / f"{number}")
        assert (said.code, said.out) == (0, f"{tmp_path}/{number}/step-300.pt\n")
        assert "passed over" not in said.err
    found = json.loads(podferry(*restore, "--to", tmp_path / "json", "-o", "json").out)
    assert (found["name"], [one["name"] for one in found["passed_over"]]) == ("step-200", ["step-300"])


def test_if_none_is_sure_the_doubtful_ones_and_the_word_are_named(podferry, destination, tmp_path):
    for step in (1, 2):
        destination.doubtful(f"step-{step}", "team.job.new")
    said = podferry("checkpoints", "restore", destination.uri, "team.job.new", "--to", tmp_path / "out")
    assert (said.code, (tmp_path / "out").exists()) == (1, False)
    assert "no checkpoint below" in said.err
    assert "step-2 (doubtful: nothing shows where its file ends), step-1 (doubtful" in said.err
    assert "the word latest takes the newest of either kind" in said.err

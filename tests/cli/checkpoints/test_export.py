from __future__ import annotations

import json

import pytest

from podferry.storage.memory.store import CONTENTS, Content

FIT = "team.job.fit"


@pytest.fixture
def elsewhere():
    """An empty store."""
    CONTENTS["elsewhere"] = Content()
    yield CONTENTS["elsewhere"]
    del CONTENTS["elsewhere"]


def export(podferry, destination, *words):
    return podferry("checkpoints", "export", destination.uri, *words)


def test_the_newest_sure_checkpoint_is_exported(podferry, destination, elsewhere):
    destination.doubtful()
    said = export(podferry, destination, FIT, "--to", "memory://elsewhere/models/fit")
    assert (said.code, said.out) == (0, "memory://elsewhere/models/fit\n")
    assert elsewhere.objects == {"models/fit/step-200.pt": b"b" * 3000}
    assert said.err.splitlines() == [
        "passed over: step-300 (doubtful: nothing shows where its file ends)",
        "exported: step-200, sure, 2.9 KiB",
        "1 file: 1 sent, 0 copied by the store, 0 there already",
    ]
    again = export(podferry, destination, FIT, "--to", "memory://elsewhere/models/fit", "-o", "json")
    found = json.loads(again.out)
    assert (found["name"], found["confidence"], found["kept"]) == ("step-200", "sure", ["step-200.pt"])


@pytest.mark.parametrize("word", ["latest", "step-300", "step-300.pt"])
def test_a_doubtful_one_is_exported_by_name(podferry, destination, elsewhere, word):
    destination.doubtful()
    said = export(podferry, destination, FIT, word, "--to", "memory://elsewhere/fit")
    assert said.code == 0
    assert "exported: step-300, doubtful" in said.err
    assert set(elsewhere.objects) == {"fit/step-300.pt"}


def test_one_store_copies_by_itself(podferry, destination):
    target = destination.uri.root / "release"
    said = export(podferry, destination, "team.job.tune", "--to", target)
    assert "2 files: 0 sent, 2 copied by the store" in said.err
    objects = CONTENTS[destination.uri.bucket].objects
    assert objects["release/epoch-7/model.bin"] == b"m" * 70_000
    assert objects["release/epoch-7/optimizer.bin"] == b"o" * 1000


def test_other_credentials_are_another_store(podferry, destination, tmp_path):
    (tmp_path / "AWS_REGION").write_text("elsewhere")
    target = destination.uri.root / "release"
    said = export(podferry, destination, "team.job.tune", "--to", target, "--to-secret-dir", tmp_path)
    assert "2 files: 2 sent, 0 copied by the store" in said.err


def test_a_mounted_store_is_a_target_and_a_plain_path_is_not(podferry, destination, tmp_path):
    said = export(podferry, destination, FIT, "--to", f"file://{tmp_path}/out")
    assert said.code == 0
    assert (tmp_path / "out/step-200.pt").read_bytes() == b"b" * 3000
    said = export(podferry, destination, FIT, "--to", tmp_path / "out")
    assert said.code == 1
    assert f"For a directory: podferry checkpoints restore … --to {tmp_path}/out" in said.err


def test_ranks_choose_their_files(podferry, destination, elsewhere):
    destination.commit_gang(0, 1)
    for rank, words in ((0, ()), (1, ("--rank", 1))):
        target = f"memory://elsewhere/{rank}"
        assert export(podferry, destination, "team.job.gang", *words, "--to", target).code == 0
        assert elsewhere.objects[f"{rank}/s/state.bin"] == b"of %d" % rank


def test_bad_targets_are_refused(podferry, destination, elsewhere):
    lineage = destination.uri / FIT
    for target, why in (
        (lineage, "the target is in a lineage"),
        (lineage / "step-200-x", "the target is in a lineage"),
        (destination.uri.root, "the target is an entire bucket"),
    ):
        said = export(podferry, destination, FIT, "--to", target)
        assert said.code == 1
        assert why in said.err
    elsewhere.objects["fit/readme"] = b"mine"
    said = export(podferry, destination, FIT, "--to", "memory://elsewhere/fit")
    assert said.code == 1
    assert "memory://elsewhere/fit has other content (readme). Export to an empty folder." in said.err
    assert set(elsewhere.objects) == {"fit/readme"}


def test_if_none_is_sure_the_word_is_named(podferry, destination, elsewhere):
    destination.doubtful("step-1", "team.job.new")
    said = export(podferry, destination, "team.job.new", "--to", "memory://elsewhere/new")
    assert said.code == 1
    assert "the word latest takes the newest of either kind" in said.err
    assert elsewhere.objects == {}

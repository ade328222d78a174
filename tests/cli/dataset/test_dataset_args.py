import json

import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.manifest import decode_manifest
from podferry.storage.memory.store import CONTENTS


def test_a_manifest_shows_the_dataset_as_frozen(podferry, digits, tmp_path):
    file = tmp_path / "manifest.json"
    assert podferry("dataset", "freeze", digits, "--manifest", file).code == 0
    assert decode_manifest(file.read_bytes(), "it").files == 4
    before = podferry("dataset", "info", digits).out
    CONTENTS["digits"].objects.clear()
    assert podferry("dataset", "info", file).out == before
    file.write_bytes(file.read_bytes()[:-40])
    said = podferry("dataset", "info", file)
    assert (said.code, "is not a valid manifest" in said.err) == (1, True)


@pytest.mark.parametrize("verb", ["ls", "info"])
def test_changes_are_reported(podferry, digits, verb):
    reference = podferry("dataset", "freeze", digits).out.strip()
    CONTENTS["digits"].objects["v1/new.png"] = b"12345"
    said = podferry("dataset", verb, reference)
    assert said.code == 1
    assert "new.png" in said.out or verb == "info"
    assert "1 file more and 5 bytes more" in said.err
    assert json.loads(podferry("dataset", verb, reference, "-o", "json").out)["changed"]


def test_the_same_figures_with_other_contents_are_a_change(podferry, digits):
    reference = podferry("dataset", "freeze", digits).out.strip()
    CONTENTS["digits"].objects["v1/labels.csv"] = b"\2" * 300
    assert "as many files and bytes, but" in podferry("dataset", "info", reference).err
    said = podferry("dataset", "freeze", reference)
    assert (said.code, said.out != reference + "\n", "has changed since it was frozen" in said.err) == (
        0,
        True,
        True,
    )


def test_figures_without_a_digest_are_checked_too(podferry, digits):
    said = podferry("dataset", "info", f"{digits}#bytes=1&files=4")
    assert (said.code, "bytes=1; there are 75,312" in said.err) == (1, True)


def test_one_object_is_a_dataset(podferry, digits):
    reference = podferry("dataset", "freeze", digits / "labels.csv").out.strip()
    assert parse_reference(reference).uri == digits / "labels.csv"
    said = podferry("dataset", "ls", reference)
    assert (said.code, said.err) == (0, "1 file, 300 B\n")


def test_a_selection_has_a_reference_of_its_own(podferry, digits):
    words = (digits, "--include", "*.png", "--exclude", "test/")
    said = podferry("dataset", "ls", *words)
    assert [line.split()[-1] for line in said.out.splitlines()] == ["NAME", "train/a.png", "train/b.png"]
    reference = podferry("dataset", "freeze", *words).out.strip()
    assert parse_reference(reference).files == 2
    CONTENTS["digits"].objects["v1/more.csv"] = b"1"
    assert podferry("dataset", "ls", reference, *words[1:]).code == 0, "what is left out may change"
    assert podferry("dataset", "ls", reference).out == said.out, "the reference carries its selection"
    other = podferry("dataset", "ls", reference, "--include", "*.csv")
    assert other.code == 1
    assert "include selects other files than the dataset reference (*.csv; frozen with *.png)" in other.err


def test_a_shard_has_the_reference_of_the_entire_selection(podferry, digits, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    entire = json.loads(podferry("dataset", "info", digits, "-o", "json").out)
    part = json.loads(podferry("dataset", "info", digits, "--shard", "auto", "-o", "json").out)
    assert (part["files"], part["bytes"]) == (3, 5312)
    assert part["reference"] == entire["reference"]


def test_a_manifest_at_a_uri_is_a_dataset(podferry, digits, tmp_path):
    place = "memory://digits/frozen/v1.podferry.json"
    said = podferry("dataset", "freeze", digits, "--manifest", place)
    assert (said.code, "note:" in said.err) == (0, False)
    CONTENTS["digits"].objects["v1/new.png"] = b"12345"
    assert podferry("dataset", "ls", place).err == "4 files, 73.5 KiB\n", "listed then, not now"
    assert podferry("dataset", "get", place, tmp_path / "stage").code == 0
    assert not (tmp_path / "stage/new.png").exists()
    CONTENTS["digits"].objects["v1/labels.csv"] = b"\2" * 300
    said = podferry("dataset", "get", place, tmp_path / "other")
    assert (said.code, "labels.csv" in said.err, "new.png" in said.err) == (1, True, True)


def test_globs_apply_to_a_manifest(podferry, digits, tmp_path):
    podferry("dataset", "freeze", digits, "--manifest", tmp_path / "m.json")
    said = podferry("dataset", "ls", tmp_path / "m.json", "--include", "train/**")
    assert (said.code, said.err) == (0, "2 files, 73.2 KiB\n")

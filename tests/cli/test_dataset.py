import json
import os

import pytest

from podferry.contract.dataset_reference import parse_reference
from podferry.contract.manifest import decode_manifest
from podferry.storage.memory.store import CONTENTS


def test_ls_golden(podferry, digits, golden):
    said = podferry("dataset", "ls", digits)
    assert (said.code, said.err) == (0, "4 files, 73.5 KiB\n")
    golden("dataset-ls", said.out)


def test_info_golden(podferry, digits, golden):
    said = podferry("dataset", "info", digits)
    assert (said.code, said.err) == (0, "")
    golden("dataset-info", said.out)


def test_info_json_golden(podferry, digits, golden):
    golden("dataset-info-json", podferry("dataset", "info", digits, "-o", "json").out)


def test_a_limit_shortens_the_list_but_not_the_totals(podferry, digits):
    said = podferry("dataset", "ls", digits, "--limit", 1)
    assert [line.split() for line in said.out.splitlines()] == [["SIZE", "NAME"], ["300", "B", "labels.csv"]]
    assert said.err == "1 of 4 files, 73.5 KiB\n"
    document = json.loads(podferry("dataset", "ls", digits, "--limit", 1, "-o", "json").out)
    assert (document["files"], document["listed"], len(document["entries"])) == (4, 1, 1)


def test_freeze_prints_one_line_that_opens_again(podferry, digits):
    said = podferry("dataset", "freeze", digits)
    assert said.out.count("\n") == 1
    reference = parse_reference(said.out.strip())
    assert (reference.uri, reference.files, reference.bytes) == (digits, 4, 75_312)
    assert podferry("dataset", "ls", reference).code == 0


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


def test_the_manifest_of_one_object_names_the_object(podferry, digits, tmp_path):
    reference = podferry("dataset", "freeze", digits / "labels.csv", "--manifest", tmp_path / "m.json").out
    document = json.loads(podferry("dataset", "info", tmp_path / "m.json", "-o", "json").out)
    assert document["reference"] == reference.strip()


def test_a_path_may_be_relative_and_hold_a_hash(podferry, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d#1").mkdir()
    (tmp_path / "d#1" / "x").write_bytes(b"1")
    said = podferry("dataset", "freeze", "d#1")
    assert said.out.startswith(f"file://{tmp_path}/d%231#sha256=")
    assert podferry("dataset", "ls", said.out.strip()).code == 0


def test_a_selection_has_a_reference_of_its_own(podferry, digits):
    words = (digits, "--include", "*.png", "--exclude", "test/")
    said = podferry("dataset", "ls", *words)
    assert [line.split()[-1] for line in said.out.splitlines()] == ["NAME", "train/a.png", "train/b.png"]
    reference = podferry("dataset", "freeze", *words).out.strip()
    assert parse_reference(reference).files == 2
    CONTENTS["digits"].objects["v1/more.csv"] = b"1"
    assert podferry("dataset", "ls", reference, *words[1:]).code == 0, "what is left out may change"
    assert "has changed since it was frozen" in podferry("dataset", "ls", reference).err


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


def test_the_nearest_prefix_is_named(podferry, digits):
    said = podferry("dataset", "ls", "memory://digits/v2")
    assert (said.code, said.out) == (1, "")
    assert "Did you mean memory://digits/v1?" in said.err


def test_a_terminal_folds_and_never_cuts(podferry, digits, monkeypatch):
    name = "very-[bold]-" + "long" * 40
    CONTENTS["digits"].objects[f"v1/{name}"] = b"1"
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("podferry.cli.output.on_terminal", lambda: True)
    out = podferry("dataset", "ls", digits).out
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 60
    assert name in "".join(line[10:].strip() for line in out.splitlines())


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ls", ""], 1, "the location is empty"),
        (["ls", "s3:///x"], 1, "names no bucket"),
        (["ls", "s4://b/x"], 1, "no engine opens s4://"),
        (["ls", "s3://b/x", "--endpoint", "nowhere"], 2, "not an endpoint address"),
        (["ls", "s3://b/x", "--endpoint", "http://127.0.0.1:9", "--secret-dir", "/none"], 1, "is missing"),
        (["ls", "s3://b/x", "--endpoint", "http://127.0.0.1:9"], 1, "there are no credentials"),
        (["ls", "memory://b/x#sha256=12&bites=3"], 1, "sha256 in the dataset reference is malformed"),
        (["ls", "memory://digits/v1", "--include", "!a"], 2, "a glob cannot be negated"),
        (["ls", "memory://digits/v1", "--shard", "9/8"], 2, "the shard's rank is not below its count"),
        (["ls", "memory://digits/v1", "--shard", "7/8"], 1, "holds no file"),
        (["ls", "memory://digits/v1", "--include", "*.jpg"], 1, "The nearest names are"),
        (["ls", "/nowhere-at-all/x"], 1, "there is no directory /nowhere-at-all"),
        (
            ["freeze", "memory://digits/v1", "--manifest", "/nowhere/m.json"],
            1,
            "there is no directory /nowhere",
        ),
    ],
)
def test_bad_input_is_an_error_message(podferry, digits, words, code, said):
    answer = podferry("dataset", *words)
    assert answer.code == code
    assert said in answer.err
    assert "Traceback" not in answer.err


def test_a_name_that_is_not_utf8_is_refused(podferry, tmp_path):
    (tmp_path / os.fsdecode(b"\xff")).write_bytes(b"1")
    answer = podferry("dataset", "ls", tmp_path)
    assert (answer.code, "rename it at its source" in answer.err) == (1, True)


def test_a_pack_lists_its_files_and_its_reference_covers_its_objects(podferry, digits, tmp_path):
    packed = "memory://digits/packed"
    said = podferry("dataset", "pack", digits, packed)
    assert said.code == 0, said.err
    said = podferry("dataset", "ls", packed, "--include", "*.csv")
    assert (said.out.splitlines()[-1].split()[-1], "note: packed into 2 objects" in said.err) == (
        "labels.csv",
        True,
    )
    reference = parse_reference(podferry("dataset", "freeze", packed).out.strip())
    assert reference.files == 2
    assert podferry("dataset", "get", reference, tmp_path / "stage", "--exclude", "*.csv").code == 0
    assert sorted(path.name for path in (tmp_path / "stage").rglob("*.*")) == ["a.png", "b.png", "c.png"]

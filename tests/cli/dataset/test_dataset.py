import json
import os

import pytest

from podferry.contract.dataset_reference import parse_reference


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


def test_the_manifest_of_one_object_names_the_object(podferry, digits, tmp_path):
    reference = podferry("dataset", "freeze", digits / "labels.csv", "--manifest", tmp_path / "m.json").out
    document = json.loads(podferry("dataset", "info", tmp_path / "m.json", "-o", "json").out)
    assert document["reference"] == reference.strip()


def test_the_nearest_prefix_is_named(podferry, digits):
    said = podferry("dataset", "ls", "memory://digits/v2")
    assert (said.code, said.out) == (1, "")
    assert "Did you mean memory://digits/v1?" in said.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["ls", ""], 1, "the location is empty"),
        (["ls", "s3:///x"], 1, "names no bucket"),
        (["ls", "s4://b/x"], 1, "no engine opens s4://"),
        (["ls", "http://127.0.0.1:9/x"], 1, "does not respond for http://127.0.0.1:9/x (connection refused"),
        (["info", "ftp://127.0.0.1:9/x"], 1, "does not respond for ftp://127.0.0.1:9/x (connection"),
        (["ls", "s3://b/x", "--endpoint", "nowhere"], 2, "not an endpoint address"),
        (
            ["ls", "s3://b/x", "--endpoint", "http://127.0.0.1:9", "--secret-dir", "/none"],
            1,
            "no such directory",
        ),
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

import io
import json
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PODS = sorted(path.stem for path in (HERE / "pods").glob("*.yaml"))
RECORDED = sorted((HERE.parent / "data" / "kfp-pods").glob("*.json"))
EXECUTOR = HERE.parent / "data" / "kfp-pods" / "executor-fstring-annotated.json"


@pytest.mark.parametrize("name", PODS)
def test_golden(podferry, golden, name):
    said = podferry("explain", "-f", HERE / "pods" / f"{name}.yaml")
    assert said.code == (1 if said.err else 0)
    golden(f"explain-{name}", said.out + said.err)


def test_every_golden_output_belongs_to_a_test():
    tests = "".join(path.read_text() for path in HERE.glob("test_*.py"))
    stems = [path.stem for path in (HERE / "golden").iterdir()]
    assert stems
    assert [
        one for one in stems if f'"{one}"' not in tests and one.removeprefix("explain-") not in PODS
    ] == []


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recorded_kfp_pods_are_read(podferry, path):
    assert RECORDED
    said = podferry("explain", "-f", path)
    assert (said.code, said.err) == (0, "")
    assert "podferry leaves it alone" in said.out or "annotation" in said.out


def test_a_kfp_step_golden(podferry, golden):
    words = ["dataset=$(inputs.uri)", "dataset-size=1Gi", "checkpoints=s3://ck", "checkpoint-size=1Mi"]
    given = [word for one in words for word in ("--annotation", one)]
    said = podferry("explain", "-f", EXECUTOR, *given)
    assert (said.code, said.err) == (0, "")
    golden("explain-kfp-step", said.out)


def test_annotations_alone(podferry):
    words = ("--annotation", "dataset=s3://b/d", "--annotation", "podferry.io/dataset-size=1Gi")
    said = podferry("explain", *words, "-o", "json")
    [shown] = json.loads(said.out)
    assert (said.code, shown["spec"]["datasets"][0]["size"], shown["problems"]) == (0, 1 << 30, [])
    assert shown["memory"][-1]["what"] == "pod, added"
    assert {value["key"]: value["source"] for value in shown["values"]}["dataset-path"] == "default"


def test_an_unknown_size_is_a_note(podferry):
    said = podferry("explain", "--annotation", "dataset=s3://b/d")
    assert said.code == 0
    assert "note: no memory sum: the size of the dataset is unknown" in said.out


def test_a_jobset_of_several_jobs_needs_the_world_for_a_rank(podferry, tmp_path):
    text = (
        (HERE / "pods" / "several.yaml")
        .read_text()
        .replace("- name: workers", "- name: workers\n    replicas: 2")
    )
    (tmp_path / "pod.yaml").write_text(text)
    said = podferry("explain", "-f", tmp_path / "pod.yaml")
    assert (said.code, said.err.count("\n")) == (1, 1)
    assert "a JobSet of several Jobs also needs podferry.io/world" in said.err
    (tmp_path / "pod.yaml").write_text(
        text.replace("dataset-size: 4Gi", 'dataset-size: 4Gi, podferry.io/world: "8"')
    )
    assert podferry("explain", "-f", tmp_path / "pod.yaml").code == 0


def test_declared_datasets(podferry):
    words = ("--annotation", "dataset=digits", "--declare", "digits=s3://d/digits#bytes=5&files=1")
    said = podferry("explain", *words)
    assert said.code == 0
    assert "s3://d/digits#bytes=5&files=1" in said.out


def test_only_list_lists(podferry, digits):
    words = ("--annotation", f"dataset={digits}")
    assert "MEMORY" not in podferry("explain", *words).out
    said = podferry("explain", *words, "--list")
    assert said.code == 0
    assert "holds 73.5 KiB in 4 files" in said.out
    assert "MEMORY" in said.out
    assert "no memory sum" not in said.out
    gone = podferry("explain", "--annotation", "dataset=memory://digits/v2", "--list")
    assert (gone.code, "Did you mean memory://digits/v1?" in gone.err) == (1, True)


def test_list_counts_the_selected_files_of_each_dataset(podferry, digits):
    settings = [
        f"dataset={digits}",
        "include=*.png",
        "shard=1/2",
        f"dataset.all={digits}",
        "exclude.all=*.csv",
    ]
    said = podferry("explain", *(word for one in settings for word in ("--annotation", one)), "--list")
    assert said.code == 0, said.err
    assert f"note: {digits}, part 1/2, holds 4.9 KiB in 2 files" in said.out
    assert f"note: {digits} holds 73.3 KiB in 3 files" in said.out
    assert "no memory sum" not in said.out
    nothing = podferry(
        "explain",
        *(word for one in settings for word in ("--annotation", one)),
        "--list",
        "--annotation",
        "include.all=*.jpg",
    )
    assert (nothing.code, "none of 4 files matches *.jpg" in nothing.err) == (1, True)


def test_standard_input(podferry, monkeypatch):
    text = b"kind: Pod\nmetadata: {annotations: {podferry.io/inject: true}}\nspec: {containers: []}\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    said = podferry("explain", "-f", "-")
    assert (said.code, 'Quote it: "true"' in said.err) == (1, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"a: [1\nb: }", "cannot be read as YAML"),
        (b"\xff\xfe\x00", "is not text"),
        (b"", "holds no pod (no document)"),
        (b"kind: ConfigMap", "holds no pod (ConfigMap)"),
        (b"[" * 1_000, "cannot be read as YAML"),
        (b"d: 2001-99-99", "cannot be read as YAML"),
        (b"a: &a [*a]\nspec: {containers: 3}", "is malformed"),
        (b"spec: {containers: []}\nmetadata: {ownerReferences: [{}]}", "is malformed"),
        (b"- 1\n- {metadata: 3, spec: {containers: []}}", "is malformed"),
    ],
)
def test_input_without_a_pod_is_an_error_message(podferry, tmp_path, text, said):
    (tmp_path / "pod.yaml").write_bytes(text)
    answer = podferry("explain", "-f", tmp_path / "pod.yaml")
    assert answer.code == 1
    assert said in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ([], 2, "Give a file with -f"),
        (["--annotation", "dataset"], 2, "write --annotation NAME=VALUE"),
        (["-f", "/nowhere/pod.yaml"], 1, "No such file or directory: /nowhere/pod.yaml"),
        (["-f", "/"], 1, "Is a directory"),
    ],
)
def test_usage_errors(podferry, words, code, said):
    answer = podferry("explain", *words)
    assert (answer.code, said in answer.err) == (code, True)

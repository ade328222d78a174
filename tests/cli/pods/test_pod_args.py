import json

import pytest

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "fit"},
    "spec": {
        "containers": [
            {"name": "main", "command": ["python", "train.py"], "resources": {"limits": {"memory": "4Gi"}}}
        ]
    },
}
SETTINGS = ("--annotation", "checkpoints=s3://b/x", "--annotation", "podferry.io/checkpoint-size=1Gi")
BOTH = pytest.mark.parametrize("verb", ["explain", "inject"])


@pytest.fixture
def pod(tmp_path):
    path = tmp_path / "pod.yaml"
    path.write_text(json.dumps(POD))
    return path


@BOTH
def test_a_file_may_be_given_in_two_ways(podferry, pod, verb):
    by_name = podferry(verb, pod, "-n", "team", *SETTINGS)
    by_option = podferry(verb, "-f", pod, "-n", "team", *SETTINGS)
    assert (by_name.code, by_name.err) == (0, "")
    assert by_name == by_option
    assert "s3://b/x" in by_name.out
    assert "team" in by_name.out


@BOTH
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.yaml", "-f", "b.yaml"], "two files are given, a.yaml and -f b.yaml: give one of them"),
        ([], "Give a file"),
        (["a.yaml", "--annotation", "dataset"], "--annotation 'dataset': write --annotation NAME=VALUE"),
    ],
)
def test_wrong_arguments_are_usage_errors(podferry, verb, words, said):
    answer = podferry(verb, *words)
    assert (answer.code, said in answer.err) == (2, True)


@BOTH
def test_a_file_that_is_no_text_is_named(podferry, tmp_path, verb):
    (tmp_path / "pod").write_bytes(b"\xff\xfe")
    assert f"{tmp_path}/pod is not text" in podferry(verb, tmp_path / "pod").err
    assert f"No such file or directory: {tmp_path}/none" in podferry(verb, tmp_path / "none").err


@BOTH
def test_a_file_that_is_no_yaml_is_named_with_the_line(podferry, tmp_path, verb):
    path = tmp_path / "pod.yaml"
    path.write_text("a: 1\nb: ]")
    answer = podferry(verb, path)
    assert answer.code == 1
    assert answer.err.startswith(f"podferry: {path} is not YAML (line 2: ")

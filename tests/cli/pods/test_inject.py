from pathlib import Path

import msgspec
import pytest
import yaml
from click.testing import CliRunner, Result

from podferry.cli.pods.inject import command
from podferry.contract.errors import InvalidSpec

POD = """
apiVersion: v1
kind: Pod
metadata:
  name: digits
  creationTimestamp: 2026-01-02T03:04:05Z
  annotations:
    podferry.io/checkpoints: s3://checkpoints/$(namespace)
    podferry.io/checkpoint-size: 10Mi
    podferry.io/shm-size: 2Gi
spec:
  containers:
    - {name: train, image: pytorch, resources: {limits: {memory: 1Gi}}}
"""
OTHER = "\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"
POLICY = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:7\n"


def run(tmp_path: Path, text: str, *options: str) -> Result:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    return CliRunner().invoke(command, [str(path), *options])


def test_the_patched_pod_and_other_objects(tmp_path: Path) -> None:
    result = run(tmp_path, POD + OTHER, "--namespace", "team")
    assert result.exit_code == 0
    pod, other = yaml.safe_load_all(result.stdout)
    assert other == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    assert [one["name"] for one in pod["spec"]["initContainers"]] == ["podferry", "podferry-gate"]
    assert "s3://checkpoints/team" in pod["metadata"]["annotations"]["podferry.io/spec"]
    assert "creationTimestamp: '2026-01-02T03:04:05Z'" in result.stdout
    assert result.stderr.startswith("warning: container train: its /dev/shm of 2.0 GiB")


def test_the_patch_and_the_policy(tmp_path: Path) -> None:
    (tmp_path / "policy.yaml").write_text(POLICY)
    result = run(tmp_path, POD + OTHER, "-o", "patch", "--policy", str(tmp_path / "policy.yaml"))
    assert result.exit_code == 0
    patch = msgspec.json.decode(result.stdout)
    assert "ConfigMap" not in result.stdout
    assert {one["value"]["image"] for one in patch if "initContainers/" in one["path"]} == {"podferry:7"}


def test_a_refusal_lists_all_problems(tmp_path: Path) -> None:
    label = "pod-security.kubernetes.io/enforce=restricted"
    result = run(tmp_path, POD.replace("checkpoint-size", "checkpoint-sise"), "--namespace-label", label)
    assert isinstance(result.exception, InvalidSpec)
    whats = [problem.what for problem in result.exception.problems]
    assert whats == [
        "podferry.io/checkpoint-sise: unknown annotation",
        "the namespace enforces restricted Pod Security, so podferry cannot run as root",
    ]
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: [", "not YAML"),
        ("", "no document"),
        ("- 1", "None"),
        (OTHER, "ConfigMap"),
        (POD + "\n---\n7", "Pod, None"),
    ],
)
def test_a_file_without_a_pod(tmp_path: Path, text: str, reason: str) -> None:
    result = run(tmp_path, text)
    assert isinstance(result.exception, InvalidSpec)
    assert reason in str(result.exception)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [("10Mi", "10", "annotations"), ("name: train", "nane: train", "name")],
)
def test_a_malformed_pod(tmp_path: Path, old: str, new: str, reason: str) -> None:
    result = run(tmp_path, POD.replace(old, new))
    assert isinstance(result.exception, InvalidSpec)
    assert "the pod is malformed" in str(result.exception)
    assert reason in str(result.exception)


def test_a_namespace_label_has_a_value(tmp_path: Path) -> None:
    result = run(tmp_path, POD, "--namespace-label", "team")
    assert (result.exit_code, "write --namespace-label NAME=VALUE" in result.stderr) == (2, True)

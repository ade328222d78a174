import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from podferry.cli.pods.policy import command
from podferry.contract.errors import InvalidSpec
from tests.cli.pods.test_policy_check import PODS, POLICY


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "policy.yaml").write_text(POLICY)
    (tmp_path / "pods.yaml").write_text(PODS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, arguments, standalone_mode=False)


@pytest.mark.usefixtures("folder")
def test_a_table_and_the_reasons() -> None:
    result = run("check", "policy.yaml", "pods.yaml")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("the policy is valid: ")
    assert lines[1] == "rule digits: pods without annotations are sent by digits.rules.podferry.io"
    assert any(line.split()[:5] == ["Job", "digits", "team-a", "injected", "digits"] for line in lines)
    assert any(line.startswith("Job wrong: podferry.io/datset: unknown annotation") for line in lines)
    assert result.return_value == 1


def test_only_what_changes(folder: Path) -> None:
    (folder / "current.yaml").write_text(POLICY)
    (folder / "policy.yaml").write_text(f"{POLICY}    enforcement: audit\n")
    result = run("check", "policy.yaml", "pods.yaml", "--current", "current.yaml")
    rows = [line for line in result.stdout.splitlines() if " team-a " in line]
    assert len(rows) == 2
    assert "injected -> audited" in rows[0]


@pytest.mark.usefixtures("folder")
def test_json() -> None:
    result = run("check", "policy.yaml", "pods.yaml", "-o", "json")
    document = json.loads(result.stdout)
    first = document["pods"][0]
    assert (first["pod"], first["outcome"], first["rule"]) == ("Job digits", "injected", "digits")


@pytest.mark.usefixtures("folder")
def test_the_policy_alone() -> None:
    result = run("check", "policy.yaml")
    assert (len(result.stdout.splitlines()), result.return_value) == (2, 0)


def test_an_invalid_policy(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace("gpus", "gpu").replace("digits\n", "Digits\n"))
    result = run("check", "policy.yaml", "pods.yaml")
    assert isinstance(result.exception, InvalidSpec)


def test_the_schema() -> None:
    assert json.loads(run("schema").stdout)["title"] == "InjectionPolicy podferry.io/v1alpha1"


def test_a_rule_after_one_that_selects_all_its_pods(folder: Path) -> None:
    later = POLICY.split("rules:\n")[1].replace("name: digits", "name: later")
    (folder / "policy.yaml").write_text(POLICY + later)
    result = run("check", "policy.yaml")
    assert "rule later never applies: rule digits, before it, selects all its pods" in result.stderr


def test_the_reason_of_a_skipped_pod_is_printed_once(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY.replace(", dataset-size: 1Gi", ""))
    result = run("check", "policy.yaml", "pods.yaml")
    lines = [line for line in result.stdout.splitlines() if line.startswith("Job digits: ")]
    assert [line.count("size of the dataset is unknown") for line in lines if "size of" in line] == [1]


def test_a_list_that_allows_more_than_it_looks(folder: Path) -> None:
    (folder / "policy.yaml").write_text(POLICY + 'allowed: {sources: ["sftp://nas*/", "s3://datasets/"]}\n')
    result = run("check", "policy.yaml")
    assert result.exit_code == 0
    assert "warning: allowed.sources: sftp://nas*/ also allows sftp://nas.elsewhere.example/" in result.stderr

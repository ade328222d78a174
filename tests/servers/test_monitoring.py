"""The alerts of deploy/, by Prometheus' own promtool: each fires when it should, and only then."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.server_binaries import installed

HERE = Path(__file__).parent
ALERTS = HERE.parents[1] / "deploy" / "components" / "monitoring" / "alerts.yaml"
TESTS = yaml.safe_load((HERE / "alerts.test.yaml").read_text())
QUIET = {"healthy": range(5, 121, 5), "a rolling update": range(1, 60)}
"""Minutes at which no alert may fire, by test."""
Json = dict[str, Any]


def rules() -> Json:
    """What the operator hands to Prometheus."""
    found: Json = yaml.safe_load(ALERTS.read_text())["spec"]
    return found


ALERTS_BY_NAME = {rule["alert"]: rule for group in rules()["groups"] for rule in group["rules"]}


def expected(test: Json) -> list[Json]:
    """The expectations of a test, with the labels and annotations that the rule gives."""
    if minutes := QUIET.get(test["name"]):
        return [{"eval_time": f"{at}m", "alertname": name} for at in minutes for name in ALERTS_BY_NAME]
    found = []
    for one in test["alert_rule_test"]:
        annotations = ALERTS_BY_NAME[one["alertname"]]["annotations"]
        fired = [{**alert, "exp_annotations": annotations} for alert in one.get("exp_alerts", [])]
        found.append({**one, "exp_alerts": fired})
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("rules")
    (made / "rules.yaml").write_text(yaml.safe_dump(rules()))
    return made


def promtool(folder: Path, *words: str) -> None:
    program = installed("prometheus").with_name("promtool")
    done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_rules_are_valid(folder: Path) -> None:
    promtool(folder, "check", "rules", "--lint=all", "--lint-fatal", "rules.yaml")


@pytest.mark.parametrize("test", TESTS["tests"], ids=lambda test: test["name"])
def test_alerts(folder: Path, test: Json) -> None:
    one = {key: test[key] for key in ("interval", "input_series")} | {"alert_rule_test": expected(test)}
    (folder / "test.yaml").write_text(yaml.safe_dump({**TESTS, "rule_files": ["rules.yaml"], "tests": [one]}))
    promtool(folder, "test", "rules", "test.yaml")


def test_each_alert_is_seen_to_fire() -> None:
    expectations = [one for test in TESTS["tests"] for one in test.get("alert_rule_test", [])]
    assert {one["alertname"] for one in expectations if one.get("exp_alerts")} == set(ALERTS_BY_NAME)

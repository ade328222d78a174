from pathlib import Path

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_file import PolicyFile

SHORT = "apiVersion: podferry.io/v1alpha1\nkind: InjectionPolicy\nimage: podferry:1\n"


def test_an_invalid_file_keeps_the_last_valid_policy(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(SHORT)
    file = PolicyFile(path)
    assert not file.refresh()
    path.write_text(SHORT + "agentPort: 80\n")
    assert not file.refresh()
    assert file.policy == Policy(image="podferry:1")
    assert file.problems == ("agentPort: not an unprivileged port (80). Write 1024 to 65535.",)
    path.unlink()
    assert not file.refresh()
    assert "cannot be read" in file.problems[0]
    path.write_text(SHORT + "agentPort: 9000\n")
    assert file.refresh()
    assert (file.policy.agent_port, file.problems) == (9000, ())


def test_a_missing_file_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match="cannot be read"):
        PolicyFile(tmp_path / "absent.yaml")


def test_an_invalid_file_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(SHORT + "agentPort: 80\n")
    for last in (None, "", "kind: Other"):
        with pytest.raises(InvalidSpec, match="agentPort: not an unprivileged port"):
            PolicyFile(path, last)
    file = PolicyFile(path, SHORT)
    assert (file.policy, file.text) == (Policy(image="podferry:1"), SHORT)
    assert "agentPort" in file.problems[0]
    path.write_text(SHORT + "agentPort: 9000\n")
    assert file.refresh()
    assert (file.policy.agent_port, file.text, file.problems) == (9000, path.read_text(), ())


def test_a_file_that_comes_back_has_no_problems(tmp_path: Path) -> None:
    path = tmp_path / "policy.yaml"
    path.write_text(SHORT)
    file = PolicyFile(path, SHORT + "agentPort: 9000\n")
    assert file.policy.agent_port == 8471
    path.unlink()
    file.refresh()
    assert file.problems
    path.write_text(SHORT)
    assert not file.refresh()
    assert file.problems == ()

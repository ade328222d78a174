from pathlib import Path

import click
import pytest

from podferry.cli.agent.agent import command, parse_config
from podferry.contract.errors import FerryError, FormatTooNew, InvalidSpec
from podferry.contract.pod_binding import PodBinding
from podferry.contract.spec import CheckpointSpec, DatasetSpec, FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.tuning import OUTAGE_SECONDS

SPEC = FerrySpec(
    (DatasetSpec("s3://b/d", "/d"), DatasetSpec("s3://b/e", "/e", name="more")),
    CheckpointSpec("s3://b/c", "/c", size=1),
    lineage="team.job.fit",
)
DIRECTORIES = [
    *("--control-dir=/control", "--dataset-dir=/data", "--dataset-dir=more=/more=of"),
    *("--checkpoint-dir=/checkpoints", "--pins-dir=/pins"),
]


def config_of(*options, spec=SPEC):
    words = [f"--spec={encode_spec(spec).decode()}", *options]
    return parse_config(command.make_context("agent", [*words]).params)


def test_options_become_one_configuration():
    secrets = ("--dataset-secret-dir=more=/secret", "--checkpoint-secret-dir=/secrets")
    config = config_of(*DIRECTORIES, *secrets, "--run-id=r", "--grace=12.5", "--polling", "--in-pod")
    assert config.spec == SPEC
    assert config.directories.datasets == {"": Path("/data"), "more": Path("/more=of")}
    assert (config.directories.checkpoints, config.directories.holds) == (Path("/checkpoints"), Path("/pins"))
    assert config.dataset_secrets == {"more": Path("/secret")}
    assert (config.checkpoint_secret, config.output_secret) == (Path("/secrets"), None)
    assert (config.tuning.grace_seconds, config.tuning.polling) == (12.5, True)
    assert (config.run_id, config.in_pod) == ("r", True)


def test_the_spec_may_be_in_the_environment(monkeypatch):
    monkeypatch.setenv("PODFERRY_SPEC", encode_spec(SPEC).decode())
    assert parse_config(command.make_context("agent", [*DIRECTORIES]).params).spec == SPEC


@pytest.mark.parametrize(("words", "seconds"), [(["--patience=600"], 600.0), ([], OUTAGE_SECONDS)])
def test_an_agent_waits_as_long_for_its_store_at_the_start_as_while_it_fetches(words, seconds):
    tuning = config_of(*DIRECTORIES, *words).tuning
    assert (tuning.startup_timeout, tuning.prefetch.patience_seconds) == (seconds, seconds)


def test_the_pod_is_known_from_the_environment(monkeypatch):
    assert config_of(*DIRECTORIES).binding is None
    monkeypatch.setenv("PODFERRY_MADE_FOR", "digits-*")
    monkeypatch.setenv("PODFERRY_POD", "digits-x7k2p")
    monkeypatch.setenv("PODFERRY_STAMP", "")  # the downward API's value for an annotation that is not there
    assert config_of(*DIRECTORIES).binding == PodBinding("digits-*", "digits-x7k2p", "")


def test_all_missing_directories_come_at_once():
    with pytest.raises(InvalidSpec) as caught:
        config_of("--control-dir=/control", "--dataset-dir=/data")
    text = str(caught.value)
    for option in ("--dataset-dir more=", "--checkpoint-dir", "--pins-dir"):
        assert option in text


@pytest.mark.parametrize(("text", "error"), [("{", FerryError), ('{"format": 99}', FormatTooNew)])
def test_a_spec_that_cannot_be_read_is_a_usage_error(monkeypatch, text, error):
    monkeypatch.setattr("podferry.cli.agent.agent.configure_logs", lambda *_: None)
    words = [f"--spec={text}", "--control-dir=/control"]
    with pytest.raises(error):
        parse_config(command.make_context("agent", [*words]).params)
    with pytest.raises(click.UsageError, match="PODFERRY_SPEC"):
        command.main(words, standalone_mode=False)

from __future__ import annotations

from pathlib import Path

from podferry.cli.agent.agent import command, parse_config
from podferry.contract.spec import FerrySpec
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.launch.launch_options import LaunchOptions, agent_flags
from podferry.sidecar.launch.secret_dirs import SecretDirs

DIRECTORIES = Directories(
    control=Path("/run/control"),
    datasets={"": Path("/data"), "extra": Path("/extra")},
    ownership={"": Path("/own")},
    checkpoints=Path("/checkpoints"),
    temporary=(Path("/run/a"), Path("/run/b")),
)


def test_the_agent_gets_from_its_flags_what_it_was_started_with() -> None:
    secrets = SecretDirs({"extra": "/secrets/extra"}, "/secrets/checkpoints")
    options = LaunchOptions(grace_seconds=7.0, polling=True, run_id="r", secrets=secrets)
    spec = encode_spec(FerrySpec()).decode()
    flags = ["--spec", spec, *agent_flags(DIRECTORIES, options)]
    config = parse_config(command.make_context("agent", flags).params)
    assert config.directories == DIRECTORIES
    assert (config.tuning.grace_seconds, config.tuning.polling, config.run_id) == (7.0, True, "r")
    assert config.dataset_secrets == {"extra": Path("/secrets/extra")}
    assert config.checkpoint_secret == Path("/secrets/checkpoints")

from collections.abc import Callable

import msgspec
import pytest

from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.trainer_env import agent_url, environment_problems, trainer_environment
from podferry.webhook.policy.policy import Policy

ALL = {
    "dataset": "s3://d/x",
    "checkpoints": "s3://c/x",
    "checkpoint_size": "1Mi",
    "outputs": "s3://o/x",
    "output_size": "1Mi",
    "dataset_path": "/data/$HOME",
}


def test_the_trainer_gets_the_paths_of_what_it_has(spec: Callable[..., FerrySpec], policy: Policy) -> None:
    url = agent_url(msgspec.structs.replace(policy, agent_port=9000), "127.1.2.3")
    wanted = msgspec.structs.replace(spec(**ALL), lineage="trial-$(x)")
    found = {one["name"]: one["value"] for one in trainer_environment(wanted, url)}
    assert wanted.checkpoints
    assert wanted.outputs
    assert found == {
        "PODFERRY_AGENT": "http://127.1.2.3:9000",
        "PODFERRY_DATASET": "/data/$$HOME",
        "PODFERRY_CHECKPOINTS": wanted.checkpoints.path,
        "PODFERRY_RESTORED_FILE": "/podferry/restored/path",
        "PODFERRY_OUTPUTS": wanted.outputs.path,
        "PODFERRY_LINEAGE": "trial-$$(x)",
    }
    only = trainer_environment(spec(dataset="s3://d/x"), url)
    assert [one["name"] for one in only] == ["PODFERRY_AGENT", "PODFERRY_DATASET"]


@pytest.mark.parametrize(
    ("variable", "measured"),
    [
        ({"name": "PODFERRY_DATASET", "value": "/elsewhere"}, "'/elsewhere'"),
        ({"name": "PODFERRY_DATASET", "valueFrom": {}}, "a reference"),
        ({"name": "PODFERRY_DATASET", "value": "/data/$$HOME"}, None),
        ({"name": "PODFERRY_OTHER", "value": "x"}, None),
    ],
)
def test_a_variable_with_another_value_is_reported(
    spec: Callable[..., FerrySpec], policy: Policy, variable: dict[str, str], measured: str | None
) -> None:
    wanted = list(trainer_environment(spec(**ALL), agent_url(policy)))
    found = list(environment_problems({"env": [variable]}, wanted))
    assert [one.measured for one in found] == ([] if measured is None else [measured])
    assert all("sets PODFERRY_DATASET" in one.what for one in found)

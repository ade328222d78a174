"""Environment variables of the training container."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from podferry.contract.errors import Problem
from podferry.contract.http_api import (
    AGENT_VARIABLE,
    CHECKPOINTS_VARIABLE,
    LINEAGE_VARIABLE,
    OUTPUTS_VARIABLE,
    RESTORED_FILE_VARIABLE,
)
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.agent_address import LOOPBACK
from podferry.webhook.injection.volumes import RESTORED_FILE
from podferry.webhook.pod.pod_json import Json, escape_dollars
from podferry.webhook.policy.policy import Policy


def variable(name: str, value: str) -> dict[str, str]:
    """An entry of `env` whose value Kubernetes does not expand."""
    return {"name": name, "value": escape_dollars(value)}


def agent_url(policy: Policy, host: str = LOOPBACK) -> str:
    """The agent's URL for containers of the pod."""
    return f"http://{host}:{policy.agent_port}"


def trainer_environment(spec: FerrySpec, url: str) -> Iterator[dict[str, str]]:
    """The variables, in the order in which they are added; `url` is the agent's."""
    if spec.needs_agent:
        yield variable(AGENT_VARIABLE, url)
    for dataset in spec.all_datasets:
        yield variable(dataset.variable, dataset.path)
    if spec.checkpoints:
        yield variable(CHECKPOINTS_VARIABLE, spec.checkpoints.path)
        yield variable(RESTORED_FILE_VARIABLE, RESTORED_FILE)
    if spec.outputs:
        yield variable(OUTPUTS_VARIABLE, spec.outputs.path)
    if spec.has_destination and spec.lineage:
        yield variable(LINEAGE_VARIABLE, spec.lineage)


def environment_problems(container: Json, variables: Iterable[Json]) -> Iterator[Problem]:
    """Variables of podferry that the container sets to something else."""
    existing = {one["name"]: one for one in container.get("env") or []}
    for wanted in variables:
        found = existing.get(wanted["name"])
        if found is not None and found != wanted:
            what = f"the training container sets {wanted['name']}, which podferry sets"
            shown = repr(found["value"]) if "value" in found else "a reference"
            yield Problem(what, shown, "Remove it from the container's env")

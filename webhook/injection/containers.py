"""Builds the containers that podferry adds to a pod."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podferry.contract.code_version import CODE_VARIABLE, encode_code
from podferry.contract.errors import Problem
from podferry.contract.http_api import AGENT_VARIABLE, RESTORED_FILE_VARIABLE, SPEC_VARIABLE
from podferry.contract.location_guards import GUARDS_VARIABLE, UNGUARDED, encode_guards
from podferry.contract.pod_binding import MADE_FOR_VARIABLE, POD_VARIABLE, STAMP_VARIABLE
from podferry.contract.spec import FerrySpec
from podferry.webhook.injection.agent_address import LOOPBACK
from podferry.webhook.injection.caches import cache_flags, cache_mounts
from podferry.webhook.injection.container_resources import AgentLimits, gate_resources, sidecar_resources
from podferry.webhook.injection.resolve import ResolvedInjection
from podferry.webhook.injection.security_context import NONROOT_USER, RunAs, gate_context, security_context
from podferry.webhook.injection.shared_caches import shared_flags
from podferry.webhook.injection.trainer_env import agent_url, variable
from podferry.webhook.injection.volumes import (
    CHECKPOINT_DIR,
    CHECKPOINT_SECRET_DIR,
    CONTROL_DIR,
    OUTPUT_DIR,
    OUTPUT_SECRET_DIR,
    PINS_DIR,
    RESTORED_FILE,
    dataset_dir,
    dataset_secret_dir,
    gate_mounts,
)
from podferry.webhook.pod.pod_json import GATE, SIDECAR, escape_dollars
from podferry.webhook.pod.refusal_text import refusal_text
from podferry.webhook.pod.stamp import SIGNATURE_STAMP
from podferry.webhook.policy.policy import Policy

COMMAND = ["podferry"]
KFP_PATIENCE_SECONDS = 600
"""For which a store may not answer before the start of a KFP step fails. KFP does not retry a failed pod (its
retry policy merges to OnError): what a Job survives by a new pod, a step has to wait for. A wrong endpoint
is seen earlier, in the step `dataset`."""


def sidecar(injection: ResolvedInjection, policy: Policy, drain_seconds: int) -> dict[str, Any]:
    """The agent: a native sidecar without a startup probe, so that other init containers run in parallel."""
    flags = (*_flags(injection.spec), *cache_flags(injection.caches), *shared_flags(injection.spec))
    arguments = [*flags, *_kfp_flags(injection.run_id)]
    return {
        "name": SIDECAR,
        **_image(policy),
        "restartPolicy": "Always",
        "command": COMMAND,
        "args": [
            "agent",
            "--in-pod",
            *([] if injection.agent_host == LOOPBACK else [f"--host={injection.agent_host}"]),
            f"--port={policy.agent_port}",
            f"--grace={drain_seconds}",
            *map(escape_dollars, arguments),
        ],
        "env": [
            variable(SPEC_VARIABLE, injection.spec_json),
            *_binding(injection),
            variable(AGENT_VARIABLE, agent_url(policy, injection.agent_host)),
            # The root file system is read-only: libraries write temporary files to the agent's own volume.
            variable("HOME", CONTROL_DIR),
            variable("TMPDIR", CONTROL_DIR),
            *_network(policy),
            *_guards(injection),
            *_code(injection),
            *injection.identity.env,
        ],
        "resources": sidecar_resources(injection.template.memory, injection.limits),
        "securityContext": security_context(injection.run_as),
        "volumeMounts": [
            *injection.template.sidecar_mounts,
            *cache_mounts(injection.caches),
            *injection.identity.mounts,
        ],
        # Runs when the pod is deleted; SIGTERM follows only after the trainer has ended.
        "lifecycle": {"preStop": {"exec": {"command": [*COMMAND, "drain"]}}},
    }


def _binding(injection: ResolvedInjection) -> Iterator[dict[str, Any]]:
    """What shows the agent that it runs in a copy of its pod."""
    yield variable(MADE_FOR_VARIABLE, injection.made_for)
    # A copy without annotations has an empty variable.
    fields = {POD_VARIABLE: "metadata.name", STAMP_VARIABLE: f"metadata.annotations['{SIGNATURE_STAMP}']"}
    for name, path in fields.items():
        yield {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _guards(injection: ResolvedInjection) -> Iterator[dict[str, str]]:
    if injection.guards != UNGUARDED:
        yield variable(GUARDS_VARIABLE, encode_guards(injection.guards))


def _code(injection: ResolvedInjection) -> Iterator[dict[str, str]]:
    if injection.spec.checkpoints:
        yield variable(CODE_VARIABLE, encode_code(injection.code))


def _network(policy: Policy) -> Iterator[dict[str, str]]:
    """What the agent needs to reach stores. The gate only calls the agent."""
    values = {
        "PODFERRY_CA_BUNDLE": policy.ca_bundle,
        "HTTPS_PROXY": policy.proxy.https,
        "HTTP_PROXY": policy.proxy.http,
        "NO_PROXY": ",".join(policy.proxy.no_proxy),
    }
    return (variable(name, value) for name, value in values.items() if value)


def gate(injection: ResolvedInjection, policy: Policy) -> dict[str, Any]:
    """The last init container: succeeds when the data is complete, else fails with the reason."""
    url, spec = agent_url(policy, injection.agent_host), injection.spec
    container = _gate(policy, ["wait"], url, injection.run_as, injection.limits)
    if spec.checkpoints:
        container["env"].append(variable(RESTORED_FILE_VARIABLE, RESTORED_FILE))
        container["volumeMounts"] = list(gate_mounts(spec))
    return container


def refusing_gate(problems: Sequence[Problem], policy: Policy, limits: AgentLimits) -> dict[str, Any]:
    """A gate that reports the problems and never opens: the trainer does not start."""
    text = refusal_text(problems)
    words = ["wait", f"--refused={escape_dollars(text)}"]
    return _gate(policy, words, agent_url(policy), RunAs(NONROOT_USER), limits)


def _flags(spec: FerrySpec) -> Iterator[str]:
    yield f"--control-dir={CONTROL_DIR}"
    for dataset in spec.datasets:
        name = f"{dataset.name}=" if dataset.name else ""
        yield f"--dataset-dir={name}{dataset_dir(dataset)}"
        if dataset.access.secret:
            yield f"--dataset-secret-dir={name}{dataset_secret_dir(dataset)}"
    if spec.checkpoints:
        yield f"--checkpoint-dir={CHECKPOINT_DIR}"
        yield f"--pins-dir={PINS_DIR}"
        if spec.checkpoints.access.secret:
            yield f"--checkpoint-secret-dir={CHECKPOINT_SECRET_DIR}"
    if spec.outputs:
        yield f"--output-dir={OUTPUT_DIR}"
        if spec.outputs.access.secret:
            yield f"--output-secret-dir={OUTPUT_SECRET_DIR}"


def _kfp_flags(run_id: str | None) -> tuple[str, ...]:
    return () if run_id is None else (f"--run-id={run_id}", f"--patience={KFP_PATIENCE_SECONDS}")


def _gate(
    policy: Policy, arguments: list[str], url: str, run_as: RunAs, limits: AgentLimits
) -> dict[str, Any]:
    return {
        "name": GATE,
        **_image(policy),
        "command": COMMAND,
        "args": arguments,
        "env": [variable(AGENT_VARIABLE, url)],
        "resources": gate_resources(limits),
        "securityContext": gate_context(run_as),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }


def _image(policy: Policy) -> dict[str, str]:
    pull = {} if policy.image_pull_policy is None else {"imagePullPolicy": policy.image_pull_policy}
    return {"image": policy.image, **pull}

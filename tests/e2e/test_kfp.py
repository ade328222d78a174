"""Recorded KFP pods, with podferry's annotations: they train on what their inputs resolve to.

Each recorded pod is created as it is, except for what needs a KFP installation: images are the local one,
Argo's own containers do nothing, and a trainer replaces the launcher's executable. Its arguments stay.
"""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
import re
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import pytest
from kfp import dsl

from podferry.components import gpu_train, verify_checkpoint
from podferry.components.trained_task.locate import places_of
from podferry.contract.lineage import lineage_of
from podferry.contract.pod_owner import pod_owner_of
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.cluster.layout import BASE_IMAGE
from tests.e2e.kfp_pods import FURNITURE, recorded, runnable
from tests.e2e.manifests import Object, podferry_annotations
from tests.e2e.namespace import STORE_SECRET, Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.scenarios import Scenarios, start_scenarios
from tests.e2e.site import Site
from tests.support.kfp_driver import CompiledPipeline

CHECKPOINT = b"weights" * 1000
TRAINER = """
import json, os, pathlib, sys
paths = os.environ["PODFERRY_DATASET"], os.environ["PODFERRY_CHECKPOINTS"]
assert paths == ("/dev/shm/dataset", "/dev/shm/checkpoints")
dataset, checkpoints = map(pathlib.Path, paths)
found = {str(path.relative_to(dataset)): path.read_text() for path in dataset.rglob("*") if path.is_file()}
restored = {path.name: path.stat().st_size for path in checkpoints.iterdir()}
print(json.dumps({"dataset": found, "restored": restored, "arguments": sys.argv[1:]}))
(checkpoints / "step-7.tmp").write_bytes(b"weights" * 1000)
(checkpoints / "step-7.tmp").rename(checkpoints / "step-7.bin")
"""


class Step(NamedTuple):
    """The settings of one recorded pod.

    Attributes:
        dataset: Its annotation.
        resolved: Bucket and key that this has to become.
        task: Pipeline and task, as the lineage has them.
        destination: Its annotation, and the key that this has to become.
    """

    dataset: str
    resolved: tuple[str, str]
    task: str
    destination: tuple[str, str] = ("s3://e2e/kfp", "kfp")


STEPS = {
    "executor-plain": Step("s3://e2e/kfp-data/n-$(inputs.n)", ("e2e", "kfp-data/n-9"), "two-step.produce"),
    "executor-annotated-emptydir": Step(
        "s3://e2e/kfp-data/$(inputs.msg)/$(inputs.ratio)", ("e2e", "kfp-data/hello-9/0.5"), "two-step.consume"
    ),
    "executor-fstring": Step("$(inputs.uri)", ("real", "c"), "fstr.cc"),
    "executor-fstring-annotated": Step(
        "$(inputs.uri)",
        ("real", "data/u3/x.bin"),
        "fstr.use",
        ("s3://e2e/kfp-$(inputs.opt)/$(inputs.flag)", "kfp-dflt/false"),
    ),
    "executor-retry": Step(
        "s3://e2e/kfp-data/$(task)/$(inputs.i)", ("e2e", "kfp-data/flaky/1"), "more.flaky"
    ),
    "executor-parallelfor": Step(
        "s3://e2e/kfp-data/$(inputs.x)/$(inputs.f)", ("e2e", "kfp-data/x2/1.5"), "more.each"
    ),
}
"""A parameter that was given, a default of the component, f-strings: all kinds of values occur."""


def ran(name: str, namespace: Namespace, *, again: bool = False) -> Outcome:
    step = STEPS[name]
    annotations = podferry_annotations(
        dataset=step.dataset,
        dataset_size="8Mi",
        checkpoints=step.destination[0],
        checkpoint_size="1Mi",
        endpoint=namespace.bucket.endpoint,
        secret=STORE_SECRET,
    )
    pod = runnable(recorded(name), TRAINER, annotations)
    if again:  # a retry is a new pod with a new name
        pod["metadata"]["name"] += "-again"
    return namespace.run(pod, timeout=120)


@pytest.fixture(scope="module")
def outcomes(site: Site) -> Iterator[Scenarios[Outcome]]:
    client: Any = site.bucket._client
    with site.cluster.network():
        client.create_bucket(Bucket="real")
        for name, step in STEPS.items():
            bucket, key = step.resolved
            one_object = key.endswith(".bin")
            client.put_object(Bucket=bucket, Key=key if one_object else f"{key}/x.bin", Body=name.encode())
    with start_scenarios(site, {name: partial(ran, name) for name in STEPS}, *FURNITURE) as found:
        yield found


@pytest.mark.parametrize("name", STEPS)
def test_a_recorded_step_trains_on_what_its_inputs_resolve_to(
    outcomes: Scenarios[Outcome], name: str
) -> None:
    outcome, step = outcomes[name], STEPS[name]
    assert outcome.succeeded, outcome
    assert {
        one.name: (one.exit_code, one.restarts) for one in outcome.pod.containers.values()
    } == dict.fromkeys((SIDECAR, "init", "kfp-launcher", GATE, "wait", "main"), (0, 0))
    seen = json.loads(outcome["main"].log)
    assert seen["dataset"] == {"x.bin": name}
    command = recorded(name)["spec"]["containers"]
    main = next(one for one in command if one["name"] == "main")
    expected = [*main["command"][1:], *main["args"]]
    assert [
        given for given, meant in zip(seen["arguments"], expected, strict=True) if "$(KFP_" not in meant
    ] == [meant for meant in expected if "$(KFP_" not in meant]
    assert_durable(outcomes.namespace, recorded(name), step)


def assert_durable(namespace: Namespace, pod: Object, step: Step) -> None:
    lineage = lineage_of(pod_owner_of(pod, namespace.name))
    assert re.fullmatch(rf"{namespace.name}\.kfp\.{re.escape(step.task)}\.[0-9a-f]{{12}}", lineage)
    (commit,) = namespace.bucket.commits(lineage, step.destination[1])
    assert namespace.bucket.committed(commit, step.destination[1]) == {"step-7.bin": CHECKPOINT}
    assert commit.run == pod["metadata"]["labels"]["pipeline/runid"]


def test_a_retried_step_is_a_new_pod_that_finds_its_checkpoint(
    outcomes: Scenarios[Outcome],
) -> None:
    assert json.loads(outcomes["executor-retry"]["main"].log)["restored"] == {}
    outcome = ran("executor-retry", outcomes.namespace, again=True)
    assert json.loads(outcome["main"].log)["restored"] == {"step-7.bin": len(CHECKPOINT)}
    assert "resuming from step-7 (commit 1)" in outcome[GATE].log


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def train(dataset: str, checkpoints: str, lr: float, epochs: int = 3):
    print(dataset, checkpoints, lr, epochs)


def verified_pipeline(endpoint: str) -> Any:
    """A training and the step that verifies it."""

    @dsl.pipeline(name="verified")
    def pipeline(bucket: str, out: str, lr: float):
        step = train(dataset=f"s3://{bucket}/kfp-data/of", checkpoints=out, lr=lr)
        places = {"endpoint": endpoint, "secret": STORE_SECRET}
        gpu_train(step, gpus=0, dataset_size="8Mi", checkpoint_size="1Mi", **places)
        verify_checkpoint(of=step)

    return pipeline


def test_the_verifying_step_finds_the_lineage_of_the_injected_pod(outcomes: Scenarios[Outcome]) -> None:
    """The pods are those that a stand-in for KFP's driver makes of the compiled pipeline."""
    namespace = outcomes.namespace
    namespace.bucket.put("kfp-data/of/x.bin", b"x")
    arguments = {"bucket": "e2e", "out": "s3://e2e/kfp-of", "lr": 0.1}
    compiled = CompiledPipeline(verified_pipeline(namespace.bucket.endpoint), arguments)
    pod = runnable(compiled.pod("train", compiled.inputs("train")), TRAINER)
    pod["metadata"]["name"] += "-of"  # it has the name of the recorded pod
    outcome = namespace.run(pod, timeout=120)
    assert outcome.succeeded, outcome
    step, inputs = "verify-checkpoint", compiled.inputs("verify-checkpoint")
    environment = compiled.environment(step, namespace.name)
    of = inputs["parameterValues"]["of"]
    [place] = places_of(of, "", compiled.command(step, inputs), environment)
    assert (place.checkpoints, place.endpoint) == ("s3://e2e/kfp-of", namespace.bucket.endpoint)
    words = ("checkpoints", "verify", place.checkpoints, place.lineages[0])
    assert [one["state"] for one in namespace.bucket.podferry_json(*words)] == ["intact"]
    (commit,) = namespace.bucket.commits(place.lineages[0], "kfp-of")
    assert commit.code is not None
    assert commit.code.image == BASE_IMAGE

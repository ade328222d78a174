"""The example pipelines: the pods of their steps, in KFP's shape, run through the webhook on the cluster.

The pipelines are the compiled ones of `tests/pipelines/golden`. Kubeflow Trainer's controller is the tests'
own stand-in, `job_controllers`.
"""

# KFP reads annotations as values: no `from __future__ import annotations` here.
# ruff: noqa: PLC0415 - and copies only the source of a step
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from podferry.components import dataset, gpu_train, verify_checkpoint, why
from podferry.components.cluster_job.job_kind import TRAIN_JOB
from podferry.components.step import DEFAULT_IMAGE
from podferry.contract.destination.commit import COMMITS
from podferry.webhook.pod.pod_json import GATE, SIDECAR
from tests.e2e.bucket import Bucket
from tests.e2e.example_data import DATA, put_data, web_server
from tests.e2e.job_controllers import controlled, trainer_of, training_runtime
from tests.e2e.job_steps import role_for_jobs
from tests.e2e.kfp_pods import FURNITURE, ROLE
from tests.e2e.namespace import Namespace
from tests.e2e.outcome import Outcome
from tests.e2e.pipeline_run import (
    STEPS_IMAGE,
    PipelineRun,
    StepFailed,
    build_steps_image,
    compiled_text,
    store_secret,
)
from tests.e2e.site import Site
from tests.support.kfp_dag import Execution, run_pipeline

GOLDEN = Path(__file__).parents[1] / "pipelines" / "golden"
SECRET = "podferry-store"
RUNTIME = "torch-distributed"
AT_ONCE = 3
"""Pipelines that run at the same time."""
RATES = (0.05, 0.2)
Outputs = Mapping[str, Any]


@dataclass(frozen=True)
class Example:
    """A pipeline and how it is run.

    Attributes:
        arguments: The pipeline's; `{data}` and `{out}` are the URIs of the prefixes of data and results.
        holds: Whether its outputs are as they have to be.
        trainings: How many pods of it train.
    """

    arguments: Mapping[str, Any]
    holds: Callable[[Outputs], bool]
    trainings: int = 1


EXAMPLES = {
    "images": Example(
        {"uri": "{data}/digits", "checkpoints": "{out}/checkpoints", "epochs": 2},
        lambda found: all(found[f"{part}_images_per_second"] > 0 for part in ("first", "later", "remote")),
    ),
    "read_write_split": Example(
        {"uri": "{data}/pictures", "checkpoints": "{out}/checkpoints", "epochs": 1},
        lambda found: min(found["staged_batch_ms"], found["remote_batch_ms"], found["accuracy"]) > 0,
    ),
    "tabular": Example(
        {"uri": "{data}/rows", "arrays": "{out}/arrays", "checkpoints": "{out}/checkpoints", "epochs": 1},
        lambda found: found["rows_per_second"] > 0 and 0 < found["auc"] <= 1,
    ),
    "text": Example(
        {"source": "{web}", "work": "{out}", "steps": 100},
        lambda found: found["bits"] > 0 and found["steps_before"] == 0,
    ),
    "sweep": Example(
        {"uri": "{data}/digits", "checkpoints": "{out}/checkpoints", "rates": [*RATES], "epochs": 1},
        lambda found: found["rate"] in RATES and 0 < found["accuracy"] <= 1,
        trainings=2,
    ),
    "scripts": Example(
        {"data": "{data}/numbers", "code": "{data}/code", "checkpoints": "{out}/checkpoints"},
        lambda found: found["Output"] == "mean 49.5",
    ),
    "distributed": Example(
        {"uri": "{data}/digits", "checkpoints": "{out}/checkpoints", "epochs": 1},
        lambda found: found["epochs_before"] == 0 and 0 < found["accuracy"] <= 1,
    ),
    "distributed_pods": Example(
        {"uri": "{data}/digits", "checkpoints": "{out}/checkpoints", "epochs": 1},
        lambda found: not found,
        trainings=0,
    ),
}


def given(example: Example, name: str, web: str, bucket: Bucket) -> dict[str, Any]:
    places = {"data": bucket.uri(DATA), "out": bucket.uri(f"examples-out/{name}"), "web": web}
    return {
        key: value.format(**places) if isinstance(value, str) else value
        for key, value in example.arguments.items()
    }


@dataclass(frozen=True)
class Ran:
    """A pipeline that has ended: its outputs and its pods."""

    outputs: Outputs
    pods: tuple[Outcome, ...]


def ran(name: str, namespace: Namespace, web: str) -> Ran:
    text = (GOLDEN / f"{name}.yaml").read_text()
    arguments = given(EXAMPLES[name], name, web, namespace.bucket)
    run = PipelineRun(namespace, text, arguments)
    outputs = run.to_its_end()
    return Ran(outputs, tuple(run.pods.values()))


@pytest.fixture(scope="module")
def namespace(site: Site) -> Iterator[Namespace]:
    build_steps_image(site.cluster)
    put_data(site.bucket)
    with site.namespace() as made:
        made.start(*FURNITURE, *ROLE, *role_for_jobs(made.name), store_secret(SECRET, site.bucket.endpoint))
        yield made


@pytest.fixture(scope="module")
def examples(
    site: Site, namespace: Namespace, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Mapping[str, Future[Ran]]]:
    runtime = training_runtime(STEPS_IMAGE, RUNTIME)
    with (
        web_server(site, tmp_path_factory.mktemp("web")) as web,
        trainer_of(site.cluster, "2.2.0", runtime),
        controlled(namespace, TRAIN_JOB),
        ThreadPoolExecutor(AT_ONCE) as pool,
    ):
        yield {name: pool.submit(ran, name, namespace, web) for name in EXAMPLES}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_step_of_an_example_succeeds(
    namespace: Namespace, examples: Mapping[str, Future[Ran]], name: str
) -> None:
    found, example = examples[name].result(), EXAMPLES[name]
    assert example.holds(found.outputs), found.outputs
    trainings = [one.pod for one in found.pods if SIDECAR in one.pod.containers]
    assert len(trainings) == example.trainings
    for pod in trainings:
        ended = {one.name: (one.exit_code, one.restarts) for one in pod.containers.values()}
        assert ended == dict.fromkeys((SIDECAR, "init", "kfp-launcher", GATE, "wait", "main"), (0, 0)), pod
    assert [key for key in namespace.bucket.objects(f"examples-out/{name}/") if f"/{COMMITS}/" in key]


@dsl.component(base_image=DEFAULT_IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str):
    from podferry.trainer import ferry

    with ferry(dataset, checkpoints) as f:
        (f.checkpoints / "step-1.tmp").write_bytes(b"weights" * 1000)
        (f.checkpoints / "step-1.tmp").rename(f.checkpoints / "step-1.bin")


@dsl.pipeline(name="explained")
def explained(uri: str, out: str):
    with dsl.ExitHandler(why()):
        data = dataset(uri, secret=SECRET)
        step = train(dataset=data.outputs["reference"], checkpoints=out)
        gpu_train(step, gpus=0, checkpoint_size="1Mi", secret=SECRET)
        verify_checkpoint(of=step, secret=SECRET)


def cut_checkpoint(bucket: Bucket, out: str) -> None:
    """Replace the committed file with a shorter one."""
    [key] = [key for key in bucket.objects(out) if key.endswith("/step-1.bin")]
    bucket.put(key, b"weights")


def test_a_broken_checkpoint_is_red_and_the_exit_task_explains_it(
    namespace: Namespace, tmp_path: Path
) -> None:
    bucket, out = namespace.bucket, "examples-out/explained"
    arguments = {"uri": bucket.uri(f"{DATA}/numbers"), "out": bucket.uri(out)}
    run = PipelineRun(namespace, compiled_text(explained, tmp_path), arguments)

    def step(one: Execution) -> Mapping[str, Any]:
        if one.task == "verify-checkpoint":
            cut_checkpoint(bucket, out)
        return run.step(one)

    with pytest.raises(StepFailed) as failed:
        run_pipeline(run.compiled, step)
    assert failed.value.task == "verify-checkpoint"
    log = failed.value.outcome["main"].log
    assert "error: " in log
    assert "Traceback" not in log
    run.step(Execution("why", "", "", run.compiled.inputs("why")))
    page = run.pods[run.compiled.node("why")]["main"].log
    assert "1 of the run's tasks failed: verify-checkpoint" in page

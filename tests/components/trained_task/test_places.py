"""What `of=` computes equals what the webhook computes for the pod of the training."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
from collections.abc import Mapping
from typing import Any, Dict, List, Optional  # noqa: UP035 - KFP maps them to its own types

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kfp import dsl

from podferry.components import gpu_train, verify_checkpoint
from podferry.components.trained_task.locate import TrainedPlace, places_of
from podferry.contract.errors import InvalidSpec
from podferry.trainer.embedded import kfp_lineage
from podferry.webhook.injection.resolve import resolve_injection
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Defaults, Policy
from tests.support.kfp_driver import CompiledPipeline, Json

POLICY = Policy(image="registry.example.com/podferry:1", defaults=Defaults(checkpoint_size=1 << 20))
RUN_URI = "minio://root/p/c6560994-25fc-4601-b7b5-e2fc66f94fe0/make"


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def train(
    checkpoints: str,
    name: str,
    lr: float = 0.1,
    epochs: int = 3,
    fast: bool = False,
    sizes: List[int] = [1, 2],  # noqa: B006, UP006
    options: Dict[str, str] = {},  # noqa: B006, UP006
    note: Optional[str] = None,  # noqa: UP045
):
    print(checkpoints, name, lr, epochs, fast, sizes, options, note)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def train_on(checkpoints: str, data: dsl.Input[dsl.Dataset], other: dsl.Input[dsl.Model]):
    print(checkpoints, data, other)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def make(data: dsl.Output[dsl.Dataset], model: dsl.Output[dsl.Model]) -> float:
    return float(len(data.uri + model.uri))


@dsl.container_component
def foreign(data: str, lr: float):
    return dsl.ContainerSpec(image="theirs:1", command=["fit"], args=["--data", data, "--lr", lr])


def injected(pod: Json) -> Any:
    """The spec that the webhook makes of the training's pod."""
    return resolve_injection(pod, Namespace("team"), POLICY).spec


def found(compiled: CompiledPipeline, inputs: Json, node: str = "", step: str = "verify-checkpoint") -> Any:
    """The only place that the step computes on a cluster."""
    command = compiled.command(step, inputs)
    values = inputs["parameterValues"]
    return places_of(values["of"], values["checkpoints"], command, compiled.environment(step, "team", node))


def agree(
    pipeline: Any, arguments: Mapping[str, Any], outputs: Mapping[str, Any] | None = None
) -> TrainedPlace:
    """The place of the pipeline's only training, which must be the one that the webhook computes."""
    compiled = CompiledPipeline(pipeline, arguments)
    [trainer] = [
        name for name in compiled.spec["root"]["dag"]["tasks"] if "train" in name or name == "foreign"
    ]
    spec = injected(compiled.pod(trainer, compiled.inputs(trainer, outputs)))
    [place] = found(compiled, compiled.inputs("verify-checkpoint", outputs))
    assert (place.checkpoints, place.lineages[0]) == (spec.checkpoints.uri, spec.lineage)
    return place


@dsl.pipeline(name="props")
def every_type(
    bucket: str,
    name: str,
    lr: float,
    epochs: int,
    fast: bool,
    sizes: list,
    options: dict,
    out: str = "s3://o/k",
):
    made = make()
    step = train(
        checkpoints=out,
        name=f"{bucket}/{name}-{made.outputs['Output']}-{epochs}",
        lr=lr,
        epochs=epochs,
        fast=fast,
        sizes=sizes,
        options={"deep": f"{name}!", "plain": "x"},
        note=name,
    )
    gpu_train(step, checkpoints=out, gpus=0)
    verify_checkpoint(of=step)


PLAIN = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\', exclude_categories=["Cc", "Cs"]), max_size=8
)
"""Texts that KFP's launcher can put into its JSON: it escapes none."""


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    arguments=st.fixed_dictionaries(
        {
            "bucket": PLAIN,
            "name": PLAIN,
            "lr": st.floats(allow_nan=False, allow_infinity=False) | st.integers(-5, 5),
            "epochs": st.integers(-(2**40), 2**40),
            "fast": st.booleans(),
            "sizes": st.lists(st.integers(-3, 3) | st.floats(-1, 1) | PLAIN, max_size=3),
            "options": st.dictionaries(PLAIN, PLAIN, max_size=2),
        }
    ),
    output=st.floats(-9, 9),
)
def test_any_inputs_give_the_lineage_of_the_injected_pod(arguments: dict[str, Any], output: float) -> None:
    agree(every_type, arguments, {"make.Output": output})


def test_types_survive_and_defaults_count() -> None:
    @dsl.pipeline(name="p")
    def left_out(out: str):
        step = train(checkpoints=out, name="x")
        gpu_train(step, checkpoints=out, gpus=0)
        verify_checkpoint(of=step)

    @dsl.pipeline(name="p")
    def written(out: str, lr: float):
        step = train(checkpoints=out, name="x", lr=lr, epochs=3)
        gpu_train(step, checkpoints=out, gpus=0)
        verify_checkpoint(of=step)

    one = agree(left_out, {"out": "s3://o/k"})
    assert one == agree(written, {"out": "s3://o/k", "lr": 0.1})
    assert one.lineages != agree(written, {"out": "s3://o/k", "lr": 0.2}).lineages
    assert one.checkpoints == "s3://o/k"
    assert one.lineages[0].startswith("team.kfp.p.train.")
    assert one.lineages[1].startswith("local.kfp.local.train.")


def test_a_number_for_a_text_is_converted_as_for_the_training() -> None:
    @dsl.pipeline(name="p")
    def converted(out: str, names: list):
        with dsl.ParallelFor(names) as item:
            step = train(checkpoints=out, name=item)  # a number for an input of type text
            gpu_train(step, checkpoints=out, gpus=0)
            verify_checkpoint(of=step)

    compiled = CompiledPipeline(converted, {"out": "s3://o/k"})
    item = {"pipelinechannel--names-loop-item": 2.0, "pipelinechannel--out": "s3://o/k"}
    [dag] = [name for name in compiled.spec["components"] if "for-loop" in name]
    above = "for-loop-2(0).iteration-iterations(1:1)(0).iteration-item(0)."
    pod = compiled.pod("train", compiled.inputs("train", dag=dag, item=item), above, dag)
    [place] = found(compiled, compiled.inputs("verify-checkpoint", dag=dag, item=item), above)
    assert place.lineages[0] == injected(pod).lineage


def test_a_task_of_an_inner_pipeline() -> None:
    @dsl.pipeline(name="inner")
    def tune(out: str, lr: float):
        step = train(checkpoints=out, name="x", lr=lr)
        gpu_train(step, checkpoints=out, gpus=0)
        verify_checkpoint(of=step)

    @dsl.pipeline(name="outer")
    def outer(out: str):
        tune(out=out, lr=0.5)

    compiled = CompiledPipeline(outer, {})
    item = {"out": "s3://o/k", "lr": 0.5}
    pod = compiled.pod(
        "train", compiled.inputs("train", dag="comp-inner", item=item), "inner(0).", "comp-inner"
    )
    [place] = found(compiled, compiled.inputs("verify-checkpoint", dag="comp-inner", item=item), "inner(0).")
    assert place.lineages[0] == injected(pod).lineage
    assert place.lineages[0].startswith("team.kfp.outer.inner.train.")


ARTIFACTS = [
    {"uri": "s3://models/imported", "metadata": {}},
    {"uri": f"{RUN_URI}/data", "metadata": {"podferry-reference": "s3://b/k#sha256=aa&bytes=1&files=1"}},
    {"uri": f"{RUN_URI}/data", "metadata": {"digest": "abc", "rows": 9.0}},
    {"uri": f"{RUN_URI}/data", "metadata": {}},
]


@pytest.mark.filterwarnings("ignore:.*are artifacts of another step:UserWarning")
@pytest.mark.parametrize("data", ARTIFACTS)
@pytest.mark.parametrize("model", ARTIFACTS[:2])
def test_artifacts_count_as_for_the_training(data: Json, model: Json) -> None:
    @dsl.pipeline(name="p")
    def artifacts(out: str):
        made = make()
        step = train_on(checkpoints=out, data=made.outputs["data"], other=made.outputs["model"])
        gpu_train(step, checkpoints=out, gpus=0)
        verify_checkpoint(of=step)

    agree(artifacts, {"out": "s3://o/k"}, {"make.data": data, "make.model": model})


def test_settings_of_gpu_train_are_followed() -> None:
    @dsl.pipeline(name="p")
    def named(out: str, lr: float):
        step = train(checkpoints=out, name="x", lr=lr)
        place = {"endpoint": "https://all:9000", "checkpoints_endpoint": "https://s3:9000", "region": "eu"}
        gpu_train(step, checkpoints=f"{out}", gpus=0, lineage="trial-$(inputs.lr)-$(task)", **place)
        verify_checkpoint(of=step)

    place = agree(named, {"out": "s3://o/k", "lr": 0.1})
    assert place == TrainedPlace("s3://o/k", ("trial-0.1-train",), "https://s3:9000", "eu")


def test_the_lineage_may_contain_the_code_and_the_image() -> None:
    @dsl.pipeline(name="p")
    def by_code(out: str):
        step = train(checkpoints=out, name="x")
        step.set_container_image("train:2")
        gpu_train(step, checkpoints=out, gpus=0, lineage="$(task)-$(code-hash)-$(image-hash)")
        verify_checkpoint(of=step)

    @dsl.pipeline(name="p")
    def of_a_container(out: str):
        step = foreign(data=out, lr=0.1)
        gpu_train(step, checkpoints=out, gpus=0, lineage="$(task)-$(code-hash)-$(image-hash)")
        verify_checkpoint(of=step)

    places = [agree(one, {"out": "s3://o/k"}) for one in (by_code, of_a_container)]
    assert len({place.lineages[0].split("-")[1] for place in places}) == 2


def test_an_undeclared_input_counts() -> None:
    @dsl.pipeline(name="p")
    def undeclared(uri: str, out: str):
        step = foreign(data=uri, lr=0.1)
        step.inputs["podferry-out"] = out
        step.channel_inputs.append(out)
        gpu_train(step, checkpoints=out, gpus=0)
        verify_checkpoint(of=step)

    place = agree(undeclared, {"uri": "s3://b/k", "out": "s3://o/k"})
    assert place.lineages[0].startswith("team.kfp.p.foreign.")


def test_several_trainings_have_their_own_inputs_and_places() -> None:
    @dsl.pipeline(name="p")
    def several(out: str, other: str):
        one, two = train(checkpoints=out, name="x", lr=0.1), train(checkpoints=other, name="x", lr=0.2)
        gpu_train(one, checkpoints=out, gpus=0)
        gpu_train(two, checkpoints=other, gpus=0)
        verify_checkpoint(of=[one, two])

    compiled = CompiledPipeline(several, {"out": "s3://o/k", "other": "s3://o/z"})
    pods = [compiled.pod(name, compiled.inputs(name)) for name in ("train", "train-2")]
    places = found(compiled, compiled.inputs("verify-checkpoint"))
    assert [one.lineages[0] for one in places] == [injected(pod).lineage for pod in pods]
    assert [one.checkpoints for one in places] == ["s3://o/k", "s3://o/z"]
    assert compiled.spec["root"]["dag"]["tasks"]["verify-checkpoint"]["dependentTasks"] == [
        "train",
        "train-2",
    ]


def test_without_annotations_or_a_cluster_it_is_the_lineage_of_ferry() -> None:
    @dsl.pipeline(name="p")
    def by_hand(out: str, lr: float):
        verify_checkpoint(of=train(checkpoints=out, name=f"{out}/x", lr=lr))

    compiled = CompiledPipeline(by_hand, {"out": "/tmp/out", "lr": 0.1})
    own = kfp_lineage(compiled.command("train", compiled.inputs("train")))
    inputs = compiled.inputs("verify-checkpoint")
    command, of = compiled.command("verify-checkpoint", inputs), inputs["parameterValues"]["of"]
    assert own is not None
    assert places_of(of, "", command, {}) == [TrainedPlace("/tmp/out", (own,))]
    assert places_of(of, "s3://o/k", command, {"PODFERRY_NAMESPACE": "team"})[0] == TrainedPlace(
        "s3://o/k", (own,)
    )


def test_gpu_train_must_come_first() -> None:
    @dsl.pipeline(name="p")
    def late(out: str):
        step = train(checkpoints=out, name="x")
        verify_checkpoint(of=step)
        with pytest.raises(InvalidSpec, match=r"too late for train .verify-checkpoint has its settings"):
            gpu_train(step, checkpoints=out, gpus=0)

    assert set(CompiledPipeline(late, {}).spec["root"]["dag"]["tasks"]) == {"train", "verify-checkpoint"}


def test_what_is_no_training_is_refused() -> None:
    @dsl.pipeline(name="p")
    def inner(out: str):
        print(out)
        train(checkpoints=out, name="x")

    @dsl.component(base_image="python:3.12", install_kfp_package=False)
    def no_place(lr: float):
        print(lr)

    @dsl.pipeline(name="p")
    def wrong(out: str):
        with pytest.raises(InvalidSpec, match="needs a step, not a pipeline"):
            verify_checkpoint(of=inner(out=out))
        with pytest.raises(InvalidSpec, match="no-place has no destination for checkpoints"):
            verify_checkpoint(of=no_place(lr=0.1))
        with pytest.raises(InvalidSpec, match="train has no destination for checkpoints"):
            verify_checkpoint(of=train(checkpoints="", name="x"))
        with pytest.raises(InvalidSpec, match="Remove lineages="):
            verify_checkpoint(of=train(checkpoints=out, name="x"), any_run=True)
        with pytest.raises(InvalidSpec, match="nothing to verify is given"):
            verify_checkpoint()

    assert wrong.pipeline_spec


def test_a_setting_without_a_value_is_named() -> None:
    @dsl.pipeline(name="p")
    def wrong(out: str, note: str):
        step = train(checkpoints=out, name="x", note=note)
        gpu_train(step, checkpoints=out, gpus=0, lineage="trial-$(inputs.note)")
        verify_checkpoint(of=step)

    compiled = CompiledPipeline(wrong, {"out": "s3://o/k", "note": "x"})
    inputs = compiled.inputs("verify-checkpoint")
    del inputs["parameterValues"]["of0--note"]  # as the driver leaves out an input that is null
    with pytest.raises(InvalidSpec, match="note"):
        found(compiled, inputs)
    with pytest.raises(InvalidSpec, match="a step of KFP"):
        places_of([], "", ["python", "x.py"], {})

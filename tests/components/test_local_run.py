"""Complete pipelines under KFP's local runner: dataset → cache → train → verify, between folders."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, List  # noqa: UP035 - KFP maps typing's List to its own type

import pytest
from google.protobuf import json_format
from kfp import dsl, local
from kfp.local import config

from podferry.components import cache, dataset, gpu_train, verify_checkpoint
from podferry.pipelines.train import pipeline as example


@pytest.fixture(autouse=True)
def runner(tmp_path: Path) -> Iterator[Path]:
    """KFP's local runner, whose steps import what this process imports."""
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    yield tmp_path / "root"
    config.LocalExecutionConfig.instance = None


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def train(reference: str, checkpoints: str, lr: float, until: int = 2) -> str:
    from podferry.components import ferry  # noqa: PLC0415

    with ferry(reference, checkpoints) as f:
        assert len(list(f.dataset.iterdir())) == 3
        done = int(f.restored.stem.split("-")[1]) if f.restored else 0
        for step in range(done + 1, until + 1):
            (f.checkpoints / f"step-{step}.pt").write_text(f"{step} after {done}")
        return f.status().checkpoints.lineage


@dsl.pipeline(name="straight")
def straight(uri: str, checkpoints: str, until: int) -> str:
    frozen = dataset(uri, secret="unused-here")
    plan = cache(frozen.outputs["reference"], checkpoint_size="1Mi", pod_memory="4Gi")
    reference = plan.outputs["reference"]
    trained = train(reference=reference, checkpoints=checkpoints, lr=0.1, until=until)
    gpu_train(trained, dataset=reference, checkpoints=checkpoints, checkpoint_size="1Mi", gpus=0)
    verify_checkpoint(checkpoints).after(trained)
    return trained.output


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def count(dataset: str) -> int:
    from podferry.components import ferry  # noqa: PLC0415

    with ferry(dataset) as f:
        return len(list(f.dataset.iterdir()))


@dsl.pipeline(name="selected")
def selected(uri: str) -> int:
    plan = cache(dataset(uri, exclude="0.*").outputs["reference"])
    return count(dataset=plan.outputs["reference"]).output


@dsl.pipeline(name="too-large")
def too_large(uri: str, checkpoints: str) -> None:
    plan = cache(uri, pod_memory="1Mi")
    train(reference=plan.outputs["reference"], checkpoints=checkpoints, lr=0.1)


@dsl.pipeline(name="verify-alone")
def verify_alone(checkpoints: str, lineages: List[str] = []) -> None:  # noqa: B006, UP006
    verify_checkpoint(checkpoints, lineages=lineages, full=True)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def trial(dataset: str, checkpoints: str, lr: float) -> str:
    from podferry.components import ferry  # noqa: PLC0415

    with ferry(dataset, checkpoints) as f:
        assert len(list(f.dataset.iterdir())) == 2
        (f.checkpoints / "last.pt").write_text(f"{lr}")
        return f.status().checkpoints.lineage


@dsl.pipeline(name="sweep")
def sweep(uri: str, checkpoints: str) -> None:
    """The form of docs/kfp.md: `dataset` inside the loop, whose outputs KFP's local runner leaves alone."""
    with dsl.ParallelFor([0.1, 0.2]) as lr:
        data = dataset(uri, exclude="0.*")
        trained = trial(dataset=data.outputs["reference"], checkpoints=checkpoints, lr=lr)
        gpu_train(trained, checkpoint_size="1Mi", gpus=0)
        verify_checkpoint(of=trained)


@dsl.pipeline(name="nightly")
def nightly(uri: str, checkpoints: str, until: int) -> None:
    frozen = dataset(uri)
    trained = train(reference=frozen.outputs["reference"], checkpoints=checkpoints, lr=0.1, until=until)
    gpu_train(trained, dataset=frozen.outputs["reference"], checkpoints=checkpoints, gpus=0)
    verify_checkpoint(of=trained, full=True)


@dsl.pipeline(name="trials")
def trials(reference: str, checkpoints: str) -> None:
    with dsl.ParallelFor([0.1, 0.2]) as lr:
        verify_checkpoint(of=train(reference=reference, checkpoints=checkpoints, lr=lr))


@dsl.pipeline(name="pair")
def pair(reference: str, checkpoints: str, other: str) -> None:
    one = train(reference=reference, checkpoints=checkpoints, lr=0.1)
    two = train(reference=reference, checkpoints=f"{other}/two", lr=0.2)
    verify_checkpoint(of=[one, two])


@dsl.pipeline(name="listed-once")
def listed_once(reference: str, checkpoints: str) -> None:
    with dsl.ParallelFor([0.1, 0.2]) as lr:
        trained = trial(dataset=reference, checkpoints=checkpoints, lr=lr)
        gpu_train(trained, checkpoint_size="1Mi", gpus=0)
        verify_checkpoint(of=trained)


@dsl.pipeline(name="nested-sweep")
def nested_sweep(uri: str, checkpoints: str) -> None:
    """The other form: one listing for all trials, passed into an inner pipeline."""
    data = dataset(uri, exclude="0.*")
    listed_once(reference=data.outputs["reference"], checkpoints=checkpoints)


@dsl.component(base_image="python:3.12", install_kfp_package=False)
def enough(files: int, least: int) -> bool:
    return files >= least


@dsl.pipeline(name="conditional")
def conditional(uri: str, checkpoints: str, least: int) -> None:
    """As docs/kfp.md writes it: a step with a single output decides."""
    data = dataset(uri)
    with dsl.If(enough(files=data.outputs["files"], least=least).output == True):  # noqa: E712 - KFP's way
        verify_checkpoint(of=train(reference=data.outputs["reference"], checkpoints=checkpoints, lr=0.1))


def commits(destination: str) -> list[str]:
    return sorted(path.name for path in Path(destination[7:]).glob("*/.podferry/commits/*"))


def test_a_run_is_verified_and_the_next_one_resumes(
    digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    straight(uri=str(digits), checkpoints=destination, until=2)
    assert commits(destination) == ["000000000001.json", "000000000002.json"]
    (lineage,) = [path.name for path in Path(destination[7:]).iterdir()]
    assert lineage.startswith("local.kfp.local.train.")
    # The same inputs: the same lineage, resumed, and nothing was left to train.
    with pytest.raises(RuntimeError, match="verify-checkpoint"):
        straight(uri=str(digits), checkpoints=destination, until=2)
    assert len(commits(destination)) == 2
    assert "another run's" in capfd.readouterr().out
    verify_alone(checkpoints=destination, lineages=[lineage])


def test_a_training_from_the_cache_is_green_until_its_checkpoint_is_damaged(
    digits: Path, destination: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    runner = local.SubprocessRunner(use_venv=False)
    local.init(runner, pipeline_root=str(tmp_path / "root"), enable_caching=True)
    for _ in range(2):
        nightly(uri=str(digits), checkpoints=destination, until=2)
    written = re.findall(
        r"Wrote executor output file to .*/(.+)/executor_output.json", capfd.readouterr().out
    )
    assert written.count("train") == 1, "the second run was not answered from the cache"
    assert len(commits(destination)) == 2
    (lineage,) = Path(destination[7:]).iterdir()
    (weights,) = lineage.glob("step-2*/step-2.pt")
    weights.write_text("3 after 0")
    with pytest.raises(RuntimeError, match="verify-checkpoint"):
        nightly(uri=str(digits), checkpoints=destination, until=2)
    assert "step-2.pt is damaged" in capfd.readouterr().out


def test_a_training_that_saved_nothing_is_red(
    digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="verify-checkpoint"):
        nightly(uri=str(digits), checkpoints=destination, until=0)
    assert "has no committed checkpoint" in capfd.readouterr().out


@pytest.mark.parametrize(("least", "trained"), [(3, 2), (4, 0)])
def test_a_training_may_depend_on_a_condition(
    least: int, trained: int, digits: Path, destination: str
) -> None:
    conditional(uri=str(digits), checkpoints=destination, least=least)
    assert len(commits(destination)) == trained


def test_every_trial_of_a_sweep_is_verified_by_itself(
    digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    for _ in range(2):
        trials(reference=str(digits), checkpoints=destination)
    assert len(list(Path(destination[7:]).iterdir())) == 2
    assert capfd.readouterr().out.count("complete") >= 4


def test_several_trainings_at_several_places(
    digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    pair(reference=str(digits), checkpoints=f"{destination}/one", other=destination)
    assert len(list(Path(destination[7:]).iterdir())) == 2
    assert capfd.readouterr().out.count("complete") >= 2


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
def test_the_example_runs_again_and_again(digits: Path, destination: str) -> None:
    for _ in range(2):
        example(uri=str(digits), checkpoints=destination, steps=2)
    (lineage,) = Path(destination[7:]).iterdir()
    assert len(commits(destination)) == 2
    # Training resumes from the checkpoint before a damaged one.
    shutil.rmtree(next(lineage.glob("step-2*")))
    example(uri=str(digits), checkpoints=destination, steps=2)


def test_a_selection_applies_in_all_steps_that_get_the_reference(digits: Path) -> None:
    assert selected(uri=str(digits)).output == 2


def test_changed_data_is_another_training(digits: Path, destination: str) -> None:
    straight(uri=str(digits), checkpoints=destination, until=1)
    (digits / "0.bin").write_bytes(b"other")
    straight(uri=str(digits), checkpoints=destination, until=1)
    assert len(list(Path(destination[7:]).iterdir())) == 2


def test_a_pod_that_does_not_fit_never_trains(
    digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match="cache"):
        too_large(uri=str(digits), checkpoints=destination)
    assert "the pod is larger than its memory" in capfd.readouterr().out
    assert not commits(destination)


def test_a_run_that_trained_nothing_fails(destination: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RuntimeError, match="verify-checkpoint"):
        verify_alone(checkpoints=destination)
    assert "this run trained no lineage" in capfd.readouterr().out


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
@pytest.mark.parametrize("form", [sweep, nested_sweep], ids=lambda form: form.name)
def test_every_trial_of_a_sweep_gets_its_dataset(
    form: Any, digits: Path, destination: str, capfd: pytest.CaptureFixture[str]
) -> None:
    form(uri=str(digits), checkpoints=destination)
    weights = {path.read_text() for path in Path(destination[7:]).glob("*/last*/last.pt")}
    assert weights == {"0.1", "0.2"}
    assert len(list(Path(destination[7:]).iterdir())) == 2
    assert capfd.readouterr().out.count("complete") >= 2


def test_a_trial_is_a_cache_hit_while_nothing_changes() -> None:
    """KFP's key of a task holds its inputs: neither an artifact nor the run's id may be one of them."""
    components = json_format.MessageToDict(sweep.pipeline_spec)["components"]
    (loop,) = (
        one["dag"]["tasks"] for one in components.values() if "trial" in one.get("dag", {}).get("tasks", {})
    )
    assert loop["trial"]["cachingOptions"] == {"enableCache": True}
    assert loop["trial"]["inputs"] == {
        "parameters": {
            "dataset": {
                "taskOutputParameter": {"producerTask": "dataset", "outputParameterKey": "reference"}
            },
            "checkpoints": {"componentInputParameter": "pipelinechannel--checkpoints"},
            "lr": {"componentInputParameter": "pipelinechannel--loop-item-param-1"},
        }
    }
    assert "enableCache" not in loop["dataset"]["cachingOptions"]

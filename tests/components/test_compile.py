"""The compiled steps: golden files that fail when stale, and what they must never contain.

`PODFERRY_GOLDEN=write pytest tests/components/test_compile.py` writes them again; review the difference.
"""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp import dsl

from podferry.components import RENAMED, cache, dataset, verify_checkpoint
from podferry.components.checkpoints.verify_checkpoint import component as verify_component
from podferry.components.data.cache import component as cache_component
from podferry.components.data.dataset import component as dataset_component
from podferry.components.step import DEFAULT_IMAGE, step_image
from podferry.pipelines.train import pipeline
from tests.support.compiled import check_golden

GOLDEN = Path(__file__).parent / "golden"
COMPONENTS = Path(__file__).parents[2] / "components"
COMPILED = {
    "dataset": dataset_component.dataset,
    "cache": cache_component.cache,
    "verify_checkpoint": verify_component.verify_checkpoint,
    "train_pipeline": pipeline,
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_steps_are_the_golden_ones(name: str, tmp_path: Path) -> None:
    check_golden(COMPILED[name], GOLDEN / f"{name}.yaml", tmp_path)


def test_every_golden_file_belongs_to_a_component() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(COMPILED)


def test_steps_install_nothing_and_run_in_our_image() -> None:
    for component in (COMPILED[name] for name in ("dataset", "cache", "verify_checkpoint")):
        spec = json_format.MessageToDict(component.pipeline_spec)
        (executor,) = spec["deploymentSpec"]["executors"].values()
        assert executor["container"]["image"] == DEFAULT_IMAGE
        assert "pip install" not in json.dumps(executor)


def test_the_image_is_chosen_when_a_pipeline_is_compiled() -> None:
    assert step_image({}) == step_image({"PODFERRY_IMAGE": ""}) == DEFAULT_IMAGE
    assert step_image({"PODFERRY_IMAGE": "team/podferry:7"}) == "team/podferry:7"


@pytest.mark.parametrize(
    ("task", "component"),
    [
        (lambda secret: dataset("s3://a/b", secret=secret), "dataset"),
        (lambda secret: cache("s3://a/b", dataset_size="1Gi", secret=secret), "cache"),
        (lambda secret: verify_checkpoint("s3://a/b", lineages="one", secret=secret), "verify-checkpoint"),
    ],
)
def test_tasks_are_never_cached_and_mount_their_secret(task: Callable[[Any], Any], component: str) -> None:
    @dsl.pipeline(name="p")
    def one() -> None:
        task("s3-credentials")

    spec = json_format.MessageToDict(one.pipeline_spec)
    assert not spec["root"]["dag"]["tasks"][component]["cachingOptions"].get("enableCache", False)
    platform = json_format.MessageToDict(one.platform_spec)["platforms"]["kubernetes"]
    (volume,) = platform["deploymentSpec"]["executors"][f"exec-{component}"]["secretAsVolume"]
    assert volume["secretName"] == "s3-credentials"
    assert volume["mountPath"] == "/var/run/secrets/podferry.io"
    assert volume["optional"] is True


def test_verify_learns_which_run_it_is_and_takes_one_lineage_or_many() -> None:
    @dsl.pipeline(name="p")
    def one(single: str, many: list) -> None:
        verify_checkpoint("s3://a/b", lineages=single)
        verify_checkpoint("s3://a/b", lineages=many)
        verify_checkpoint("s3://a/b", lineages=["x", single])
        verify_checkpoint("s3://a/b")

    tasks = json_format.MessageToDict(one.pipeline_spec)["root"]["dag"]["tasks"]
    given = [
        tasks[name]["inputs"]["parameters"] for name in sorted(tasks, key=lambda name: (len(name), name))
    ]
    constants = [one["runtimeValue"]["constant"] for one in (given[0]["run"], given[0]["job"])]
    assert constants == [dsl.PIPELINE_JOB_ID_PLACEHOLDER, dsl.PIPELINE_JOB_NAME_PLACEHOLDER]
    lineages = [one["lineages"] for one in given]
    place = "{{$.inputs.parameters['pipelinechannel--single']}}"
    assert lineages[0]["runtimeValue"]["constant"] == [place]
    assert lineages[1] == {"componentInputParameter": "many"}
    assert lineages[2]["runtimeValue"]["constant"] == ["x", place]
    assert lineages[3]["runtimeValue"]["constant"] == []


def test_every_component_has_metadata_and_readme() -> None:
    folders = [path.parent for path in COMPONENTS.glob("*/*/__init__.py")]
    assert len(folders) == 4
    for folder in folders:
        metadata = yaml.safe_load((folder / "metadata.yaml").read_text())
        assert set(metadata) == {"name", "stability", "dependencies", "tags", "links"}
        assert (folder / "README.md").read_text().startswith(f"# {metadata['name']}\n")


def test_training_code_gets_ferry_without_kfp() -> None:
    code = "import sys; from podferry.components import ferry; print('kfp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


IMPORTED_FIRST = (
    "import podferry.components.data.dataset.component",
    "import podferry.components.data.dataset.runner",
    "from podferry.components.data import dataset",
    "import podferry.pipelines.train",
    "pass",
)


@pytest.mark.parametrize("first", IMPORTED_FIRST)
def test_names_are_the_functions_whatever_was_imported_before(first: str) -> None:
    code = f"{first}\nfrom podferry.components import *\nprint(dataset.__module__, cache.__module__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [f"podferry.components.data.{name}.task" for name in ("dataset", "cache")]


@pytest.mark.parametrize("name", ["freeze_dataset", "plan_cache", "verify"])
def test_names_of_earlier_versions_say_their_replacement(name: str) -> None:
    code = f"from podferry.components import {name}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"podferry.components.{name} is now podferry.components.{RENAMED[name]}" in done.stderr

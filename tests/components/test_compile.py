"""The compiled steps: golden files that fail when stale, and what they must never contain.

`PODFERRY_GOLDEN=write pytest tests/components/test_compile.py` writes them again; review the difference.
"""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from google.protobuf import json_format
from kfp import dsl

from podferry.components import (
    RENAMED,
    cache,
    create_cache,
    dataset,
    prepare,
    remove_from_cache,
    restore_point,
    sync,
    verify_checkpoint,
)
from podferry.components.checkpoints.restore_point import component as restore_component
from podferry.components.checkpoints.verify_checkpoint import component as verify_component
from podferry.components.data.cache import component as cache_component
from podferry.components.data.dataset import component as dataset_component
from podferry.components.data.node_cache import component as node_cache_component
from podferry.components.data.prepare import component as prepare_component
from podferry.components.data.sync import component as sync_component
from podferry.components.diagnosis.why import component as why_component
from podferry.components.step import DEFAULT_IMAGE, step_image
from podferry.components.training.paddle_job import component as paddle_job_component
from podferry.components.training.train_job import component as train_job_component
from podferry.pipelines.train import pipeline
from tests.support.compiled import check_golden

GOLDEN = Path(__file__).parent / "golden"
COMPONENTS = Path(__file__).parents[2] / "components"
COMPILED = {
    "dataset": dataset_component.dataset,
    "cache": cache_component.cache,
    "cache_verb": node_cache_component.cache_verb,
    "create_cache": node_cache_component.create_cache,
    "prepare": prepare_component.prepare,
    "sync": sync_component.sync,
    "verify_checkpoint": verify_component.verify_checkpoint,
    "restore_point": restore_component.restore_point,
    "train_job": train_job_component.train_job,
    "paddle_job": paddle_job_component.paddle_job,
    "train_pipeline": pipeline,
    "why": why_component.why,
}


@pytest.mark.parametrize("name", COMPILED)
def test_compiled_steps_are_the_golden_ones(name: str, tmp_path: Path) -> None:
    check_golden(COMPILED[name], GOLDEN / f"{name}.yaml", tmp_path)


def test_every_golden_file_belongs_to_a_component() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(COMPILED)


def test_steps_install_nothing_and_run_in_our_image() -> None:
    for component in (component for name, component in COMPILED.items() if name != "train_pipeline"):
        spec = json_format.MessageToDict(component.pipeline_spec)
        (executor,) = spec["deploymentSpec"]["executors"].values()
        assert executor["container"]["image"] == DEFAULT_IMAGE
        assert "pip install" not in json.dumps(executor)


def test_the_image_is_chosen_when_a_pipeline_is_compiled() -> None:
    assert step_image({}) == step_image({"PODFERRY_IMAGE": ""}) == DEFAULT_IMAGE
    assert step_image({"PODFERRY_IMAGE": "team/podferry:7"}) == "team/podferry:7"


STEPS: dict[str, Callable[..., Any]] = {
    "dataset": lambda **keywords: dataset("s3://a/b", **keywords),
    "cache": lambda **keywords: cache("s3://a/b", dataset_size="1Gi", **keywords),
    "prepare": lambda **keywords: prepare("s3://a/b", ["true"], to="s3://a/c", **keywords),
    "sync": lambda **keywords: sync("s3://a/b", "s3://a/c", **keywords),
    "cache-verb": lambda **keywords: remove_from_cache("digits", ["a"], **keywords),
    "verify-checkpoint": lambda **keywords: verify_checkpoint("s3://a/b", lineages="one", **keywords),
}
"""Every step that looks at the outside, by its task's name."""


OWN_INPUTS = re.compile(r"run|job|of|artifact\d")
"""What a step fills in itself."""


@pytest.mark.parametrize(
    "add", [cache, create_cache, dataset, prepare, restore_point, sync, verify_checkpoint]
)
def test_every_input_is_a_keyword_with_a_name(add: Callable[..., Any]) -> None:
    """Editors complete it, and Python names a misspelled one."""
    component = COMPILED[add.__name__]
    inputs = {name for name in component.component_spec.inputs if not OWN_INPUTS.fullmatch(name)}
    parameters = inspect.signature(add).parameters
    assert not inputs - parameters.keys()
    assert all(one.kind is not one.VAR_KEYWORD for one in parameters.values())


def compiled_step(name: str, **keywords: Any) -> tuple[dict[str, Any], dict[str, Any], Any]:
    """The pipeline, the task and the platform specification of one step."""

    @dsl.pipeline(name="p")
    def one() -> None:
        STEPS[name](**keywords)

    spec = json_format.MessageToDict(one.pipeline_spec)
    return spec, spec["root"]["dag"]["tasks"][name], json_format.MessageToDict(one.platform_spec)


@pytest.mark.parametrize("name", STEPS)
def test_no_run_is_answered_from_the_cache_of_another(name: str) -> None:
    """The client's enable_caching=True sets the option for all tasks; the run's id is still another input."""
    _, task, _ = compiled_step(name)
    assert not task["cachingOptions"].get("enableCache", False)
    assert task["inputs"]["parameters"]["run"] == {
        "runtimeValue": {"constant": dsl.PIPELINE_JOB_ID_PLACEHOLDER}
    }


@pytest.mark.parametrize("name", STEPS)
def test_steps_mount_their_secret_and_take_place_and_image(name: str) -> None:
    place = {"endpoint": "https://s:9", "region": "r"}
    spec, task, platform = compiled_step(name, secret="s3-credentials", image="team/podferry:7", **place)
    (volume,) = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"][f"exec-{name}"][
        "secretAsVolume"
    ]
    assert volume["secretName"] == "s3-credentials"
    assert volume["mountPath"] == "/var/run/secrets/podferry.io"
    assert volume["optional"] is True
    given = {key: task["inputs"]["parameters"][key]["runtimeValue"]["constant"] for key in place}
    assert given == place
    (executor,) = spec["deploymentSpec"]["executors"].values()
    assert executor["container"]["image"] == "team/podferry:7"


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
    assert folders
    for folder in folders:
        metadata = yaml.safe_load((folder / "metadata.yaml").read_text())
        assert set(metadata) == {"name", "stability", "tier", "dependencies", "tags", "lastVerified", "links"}
        assert isinstance(metadata["lastVerified"], datetime)
        assert yaml.safe_load((folder / "OWNERS").read_text())["approvers"]
        assert (folder / "README.md").read_text().startswith(f"# {metadata['name']}\n")


def test_training_code_gets_ferry_without_kfp() -> None:
    code = "import sys; from podferry.components import ferry; print('kfp' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def loaded_by(code: str) -> set[str]:
    """The modules that a statement adds to those of kfp."""
    before = "import sys, kfp, kfp.kubernetes; before = set(sys.modules)"
    said = f"{before}\n{code}\nprint(*(set(sys.modules) - before))"
    return set(subprocess.check_output([sys.executable, "-c", said], text=True).split())


def test_importing_the_package_loads_nothing_else() -> None:
    assert {name for name in loaded_by("import podferry.components") if "." in name} == {
        "podferry.components"
    }


def test_names_of_steps_load_neither_the_agent_nor_what_parses_settings() -> None:
    """It is the time to import them: msgspec alone takes as long as all of this."""
    loaded = loaded_by("from podferry.components import cache, dataset, gpu_train")
    assert not {name for name in loaded if name.startswith("podferry.") and "components" not in name}
    assert "msgspec" not in loaded


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

"""Reads the inputs of a KFP step from its pod's command, before it runs.

Source: pods as KFP 2.17.0 creates them (`tests/data/kfp-pods`). The launcher's flags are in the main
container's command. In `--executor_input`, f-strings still contain `{{$.inputs.parameters['…']}}`; defaults
are only in `--component_spec`. The launcher fills in both at run time; at admission we must do the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from typing import Any, TypeVar

import msgspec

from podferry.contract.errors import InvalidSpec
from podferry.contract.kfp_run_folders import run_of, without_runs

REFERENCE_KEY = "podferry-reference"
"""The metadata field with the reference of a dataset artifact."""
DIGEST_KEYS = ("podferry-digest", "sha256", "digest")
"""Metadata fields that identify an artifact's content, by preference."""
CHANNEL_PREFIX = "pipelinechannel--"
"""Prefix of the helper inputs that KFP's compiler adds for the parts of f-strings."""
UNDECLARED_PREFIX = "podferry_"
"""Prefix of the inputs that podferry adds to a task whose component does not declare them. Only a dataset
distinguishes training runs: one that gets another Secret, endpoint or run's id resumes."""
UNDECLARED_DATASET = re.compile(rf"{UNDECLARED_PREFIX}dataset(__.+)?")
COMPILER_INPUTS = frozenset(
    {
        *("cpu_request", "cpu_limit", "memory_request", "memory_limit"),
        *("accelerator_type", "accelerator_count", "base_image"),
    }
)
"""Inputs that KFP's compiler adds to a task if a resource or the image is another task's output. They do not
distinguish training runs: one that gets more memory after an out-of-memory kill resumes."""
PLATFORM_TYPES = frozenset({"TASK_CONFIG", "TASK_FINAL_STATUS"})
"""Types of inputs that KFP fills in itself: with the pod's resources, for example."""
FLAGS = frozenset({"--executor_input", "--component_spec", "--pipeline_name", "--run_id"})
"""Those of the launcher that are read."""
PLACEHOLDER = re.compile(r"\{\{\$\.inputs\.parameters\['([^']*)'\]\}\}")
MAX_EXACT_INTEGER = 2**53
"""The largest integer up to which doubles are exact; KFP's numbers are doubles."""
HASH_DIGITS = 12
CANONICAL_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))
T = TypeVar("T")


class Artifact(msgspec.Struct, frozen=True):
    """An input artifact.

    Attributes:
        uri: Its location, usually in the pipeline root.
        metadata: As written by its producer.
    """

    uri: str = ""
    metadata: dict[str, Any] = {}

    @property
    def location(self) -> str:
        """The value of `$(inputs.NAME)`: the reference in its metadata, else its URI."""
        return str(self.metadata.get(REFERENCE_KEY) or self.uri)

    @property
    def identity(self) -> str | None:
        """An id that is the same in every run with the same input, or None if there is none.

        A URI in the pipeline root contains the ids of a run and of an execution, so it differs between equal
        runs: a path with a UUID or a run's folder in it does not identify the content.
        """
        for key in (REFERENCE_KEY, *DIGEST_KEYS):
            if self.metadata.get(key):
                return str(self.metadata[key])
        return None if without_runs(self.uri) != self.uri else self.uri


class KfpInputs(msgspec.Struct, frozen=True):
    """The inputs of a KFP step.

    Attributes:
        pipeline: The pipeline's name; empty under KFP's local runner.
        run_id: The run's id; under KFP's local runner the run's folder, which is part of the output paths.
        component: The component's name, shared by all its tasks.
        parameters: Values by name, including defaults, with f-strings filled in.
        artifacts: The input artifacts by name; a list input has several.
    """

    pipeline: str
    run_id: str
    component: str
    parameters: dict[str, Any]
    artifacts: dict[str, tuple[Artifact, ...]]

    @property
    def texts(self) -> dict[str, str]:
        """The value of `$(inputs.NAME)` by name; of a list of artifacts, that of the first."""
        locations = {name: found[0].location for name, found in self.artifacts.items() if found}
        return locations | {name: render(value) for name, value in self.parameters.items()}

    @property
    def digest(self) -> str:
        """The hash of the inputs: 12 hexadecimal digits of SHA-256 over canonical JSON.

        Equal parameter values, given or default, have the same hash. Artifacts count by reference, digest or
        imported URI, else by name alone: their URIs would make every run a different training run. Of the
        inputs that podferry added, only datasets count.
        """
        parameters = {name: value for name, value in self.parameters.items() if _distinguishes_runs(name)}
        artifacts = {name: [one.identity for one in found] for name, found in self.artifacts.items()}
        text = _canonical({"parameters": parameters, "artifacts": artifacts})
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_DIGITS]


class _Artifacts(msgspec.Struct):
    artifacts: tuple[Artifact, ...] = ()


class _Inputs(msgspec.Struct, rename="camel"):
    parameter_values: dict[str, Any] = {}
    artifacts: dict[str, _Artifacts] = {}


class _Outputs(msgspec.Struct, rename="camel"):
    output_file: str = ""


class _ExecutorInput(msgspec.Struct):
    inputs: _Inputs = msgspec.field(default_factory=_Inputs)
    outputs: _Outputs = msgspec.field(default_factory=_Outputs)


class _Parameter(msgspec.Struct, rename="camel"):
    parameter_type: str = ""
    default_value: Any = None


class _Definitions(msgspec.Struct):
    parameters: dict[str, _Parameter] = {}


class _ComponentSpec(msgspec.Struct, rename="camel"):
    input_definitions: _Definitions = msgspec.field(default_factory=_Definitions)
    executor_label: str = ""


def read_kfp_inputs(command: Sequence[str]) -> KfpInputs | None:
    """The inputs in a container's command, or None if it is not a KFP executor.

    Raises:
        InvalidSpec: It is an executor's command, but its documents cannot be read.
    """
    if not any(word.startswith("--executor_input") for word in command):
        return None
    return _executor_inputs(tuple(command))


@lru_cache(maxsize=16)
def _executor_inputs(command: tuple[str, ...]) -> KfpInputs | None:
    """As `read_kfp_inputs`: a review asks several times."""
    flags = _flags(command)
    text = flags.get("--executor_input")
    if text is None:
        return None
    document = _document(text, _ExecutorInput, "--executor_input")
    given, written = document.inputs, run_of(document.outputs.output_file)
    component = _document(flags.get("--component_spec") or "{}", _ComponentSpec, "--component_spec")
    return KfpInputs(
        pipeline=flags.get("--pipeline_name") or written.pipeline,
        run_id=flags.get("--run_id") or written.run,
        component=component.executor_label.removeprefix("exec-"),
        parameters=_parameters(given.parameter_values, component.input_definitions.parameters),
        artifacts={name: found.artifacts for name, found in sorted(given.artifacts.items())},
    )


def render(value: object) -> str:
    """A parameter as text, as the launcher renders it: `true`, `7` for 7.0, JSON for lists and dicts."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and not isinstance(_plain(value), int):
        return format(Decimal(repr(value)), "f")
    return _canonical(value)


def _distinguishes_runs(name: str) -> bool:
    """Whether training runs with different values of this input are different ones."""
    return not name.startswith(UNDECLARED_PREFIX) or UNDECLARED_DATASET.fullmatch(name) is not None


def _parameters(given: Mapping[str, Any], declared: Mapping[str, _Parameter]) -> dict[str, Any]:
    defaults = {name: one.default_value for name, one in declared.items()}
    compiled = COMPILER_INPUTS - declared.keys()
    compiled |= {name for name, one in declared.items() if one.parameter_type in PLATFORM_TYPES}
    added = [name for name in given if name.startswith(CHANNEL_PREFIX) or name in compiled]
    values = {name: _fill(value, given) for name, value in given.items() if name not in added}
    return {name: _plain(value) for name, value in sorted((defaults | values).items()) if value is not None}


def _fill(value: Any, given: Mapping[str, Any]) -> Any:
    """Fill the inputs' values into the f-strings in `value`; unknown names stay, as in the launcher."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda m: render(given[m[1]]) if m[1] in given else m[0], value)
    if isinstance(value, list):
        return [_fill(item, given) for item in value]
    if isinstance(value, dict):
        return {name: _fill(item, given) for name, item in value.items()}
    return value


def _plain(value: Any) -> Any:
    """Convert KFP's doubles to integers, so that 9 and 9.0 are one value."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_EXACT_INTEGER:
        return int(value)
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    return value


def _canonical(value: object) -> str:
    return CANONICAL_JSON.encode(_plain(value))


def _flags(command: Sequence[str]) -> dict[str, str]:
    """The value of the first `--NAME VALUE` or `--NAME=VALUE` of each of `FLAGS`."""
    found: dict[str, str] = {}
    for at, word in enumerate(command, start=1):
        if word.startswith("--"):
            name, equals, value = word.partition("=")
            if name in FLAGS and (equals or at < len(command)):
                found.setdefault(name, value if equals else command[at])
    return found


def _document(text: str, kind: type[T], flag: str) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        what = f"the KFP launcher's {flag} cannot be read"
        raise InvalidSpec.of(what, str(error), "Report it with the pod's YAML") from error

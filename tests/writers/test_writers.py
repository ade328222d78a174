"""Every framework writes, stopped at every system call: no checkpoint is accepted too early."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from replay import Replay
from tracer import trace

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES

PROGRAMS = Path(__file__).parent / "programs"
CALL_TIMEOUT_SECONDS = 240.0
"""Until a program's next system call: imports, on a busy machine."""


@dataclass(frozen=True)
class Case:
    """A program that writes like one rule of the table."""

    program: str
    framework: str
    modules: tuple[str, ...] = ()


CASES = (
    Case("torch_save", "torch.save, Keras archives, savez", ("torch",)),
    Case("keras_archive", "torch.save, Keras archives, savez", ("keras", "tensorflow")),
    Case("torch_dcp", "torch DCP", ("torch",)),
    Case("tensorflow_saver", "TensorFlow Saver", ("tensorflow",)),
    Case("tensorflow_savedmodel", "TensorFlow SavedModel", ("tensorflow",)),
    Case("orbax_manager", "Orbax", ("orbax", "jax")),
    Case("hf_trainer", "Hugging Face Trainer", ("transformers", "torch", "accelerate")),
    Case("imitated_trainer_ranks", "Hugging Face Trainer, several processes"),
    Case("safetensors_single", "safetensors, single", ("safetensors", "numpy")),
    Case("safetensors_sharded", "safetensors, sharded", ("transformers", "torch", "safetensors")),
    Case("safetensors_sharded", "Hugging Face save_pretrained", ("transformers", "torch", "safetensors")),
    Case("accelerate_state", "Accelerate save_state", ("accelerate", "torch")),
    Case("lightning_callback", "Lightning", ("lightning", "torch")),
    Case("lightning_link", "Lightning", ("lightning", "torch")),
    Case("deepspeed_engine", "DeepSpeed", ("deepspeed", "torch")),
    Case("megatron_core", "Megatron-LM", ("megatron", "torch")),
    Case("paddle_save", "Paddle", ("paddle",)),
    Case("imitated_files", "any other"),
)


@pytest.fixture
def traced(tmp_path, interpreter, environment, needed):
    def run(program, *modules, **variables):
        needed(*modules)
        root, done = tmp_path / "root", tmp_path / "done"
        root.mkdir()
        done.mkdir()
        command = [interpreter, str(PROGRAMS / f"{program}.py"), str(root), str(done)]
        return trace(command, root, done, {**environment, **variables}, CALL_TIMEOUT_SECONDS)

    return run


@pytest.fixture
def replayed(tmp_path):
    def replay(found, only=""):
        root = tmp_path / f"replay{only.replace('/', '-')}"
        root.mkdir()
        return Replay(found, root, only)

    return replay


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.program}-{case.framework}")
async def test_no_checkpoint_is_accepted_too_early(case, traced, replayed):
    rule = next(rule for rule in FRAMEWORK_RULES if rule.name == case.framework)
    replay = replayed(traced(case.program, *case.modules))
    wrong, missed = await replay.accepted()
    assert (wrong, missed) == ([], set())
    torn = await replay.torn()
    if rule.detects_torn:
        assert torn == []
    else:  # the rules cannot detect all: the pause protects
        assert torn != []


async def test_a_copy_from_another_mount_is_detected_by_its_format(tmp_path, traced, replayed):
    with TemporaryDirectory(dir=other_mount(tmp_path)) as folder:
        replay = replayed(traced("lightning_callback", "lightning", "torch", TMPDIR=folder))
    assert any(moment.call.startswith(("write ", "sendfile ")) for moment in replay.trace.moments)
    assert await replay.accepted() == ([], set())
    assert await replay.torn() == []


async def test_each_pod_of_a_gang_has_its_part(traced, replayed):
    found = traced("torch_dcp_pods", "torch")
    coordinator, other = replayed(found, "pod-0/"), replayed(found, "pod-1/")
    assert await coordinator.accepted() == ([], set())
    assert await coordinator.torn() == []
    assert await other.accepted(gang=True) == ([], set())
    assert await other.torn(gang=True) != []  # nothing is written after its shard
    _, missed = await other.accepted()
    assert [name.split(":")[0] for name in sorted(missed)] == ["step-1", "step-2"]


def test_every_framework_has_a_case():
    assert {case.framework for case in CASES} == {rule.name for rule in FRAMEWORK_RULES}


def other_mount(path):
    """A directory on another file system than this path."""
    for place in map(Path, ("/dev/shm", "/tmp", "/var/tmp")):
        if place.is_dir() and place.stat().st_dev != path.stat().st_dev:
            return place
    pytest.skip("there is only one file system")

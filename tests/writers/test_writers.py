"""Every writer of the table writes, is stopped at every call, and is never taken for whole too early."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from replay import Replay
from tracer import trace

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES

PROGRAMS = Path(__file__).parent / "programs"
LONGEST = 240.0
"""Seconds that a program may take until its next call: imports, on a busy machine."""


@dataclass(frozen=True)
class Case:
    """A program that writes as one row of the table says."""

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
    def run(program, *modules, **more):
        needed(*modules)
        root, done = tmp_path / "root", tmp_path / "done"
        root.mkdir()
        done.mkdir()
        command = [interpreter, str(PROGRAMS / f"{program}.py"), str(root), str(done)]
        return trace(command, root, done, {**environment, **more}, LONGEST)

    return run


@pytest.fixture
def replayed(tmp_path):
    def lay(found, only=""):
        root = tmp_path / f"replay{only.replace('/', '-')}"
        root.mkdir()
        return Replay(found, root, only)

    return lay


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.program}-{case.framework}")
async def test_nothing_is_taken_for_whole_too_early(case, traced, replayed):
    rule = next(rule for rule in FRAMEWORK_RULES if rule.name == case.framework)
    replay = replayed(traced(case.program, *case.modules))
    wrong, missed = await replay.offered()
    assert (wrong, missed) == ([], set())
    torn = await replay.torn()
    if rule.detects_torn:
        assert torn == []
    else:  # the rules cannot tell: the pause is what protects
        assert torn != []


async def test_a_copy_from_another_mount_is_told_by_its_format(tmp_path, traced, replayed):
    with TemporaryDirectory(dir=other_mount(tmp_path)) as folder:
        replay = replayed(traced("lightning_callback", "lightning", "torch", TMPDIR=folder))
    assert any(moment.call.startswith(("write ", "sendfile ")) for moment in replay.trace.moments)
    assert await replay.offered() == ([], set())
    assert await replay.torn() == []


async def test_each_pod_of_a_gang_has_its_part(traced, replayed):
    found = traced("torch_dcp_pods", "torch")
    coordinator, other = replayed(found, "pod-0/"), replayed(found, "pod-1/")
    assert await coordinator.offered() == ([], set())
    assert await coordinator.torn() == []
    assert await other.offered(gang=True) == ([], set())
    assert await other.torn(gang=True) != []  # its shard has nothing that comes after it
    _, missed = await other.offered()
    assert [name.split(":")[0] for name in sorted(missed)] == ["step-1", "step-2"]


def test_every_writer_has_a_case():
    assert {case.framework for case in CASES} == {rule.name for rule in FRAMEWORK_RULES}


def other_mount(path):
    """A place on another file system than this path's."""
    for place in map(Path, ("/dev/shm", "/tmp", "/var/tmp")):
        if place.is_dir() and place.stat().st_dev != path.stat().st_dev:
            return place
    pytest.skip("there is one file system alone")

"""Real libraries write; whatever happens to them, nothing incomplete is sure, and what is complete is."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from campaign import Campaign, Report
from runs import Server

from podferry.sidecar.checkpoint.detect.doubtful_writers import DOUBTFUL_WRITERS, Which
from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES

PROGRAMS = Path(__file__).parent / "programs"
SEED = int(os.environ.get("PODFERRY_WRITERS_SEED", "1"))
RUNS = int(os.environ.get("PODFERRY_WRITERS_RUNS", "90"))
"""With a fault, for each program; a sample if it has more calls that can fail."""
REPORT = os.environ.get("PODFERRY_WRITERS_REPORT")
"""A directory for a report of each program."""


@dataclass(frozen=True)
class Case:
    """A program, what it needs, and the frameworks whose rules apply to what it writes.

    Attributes:
        program: Its name.
        modules: What it imports.
        frameworks: Names of rules.
        doubtful: Keys of the exceptions in the table of doubtful writers.
        share: Of the usual number of runs: those of slow programs cost seconds.
    """

    program: str
    modules: tuple[str, ...] = ()
    frameworks: tuple[str, ...] = ("any other",)
    doubtful: tuple[str, ...] = ()
    share: float = 1.0


ARCHIVE = ("torch.save, Keras archives, savez",)
CASES = (
    Case("torch_save", ("torch",), ARCHIVE),
    Case("torch_flat", ("torch",), ARCHIVE, doubtful=("files",)),
    Case("torch_flat_numbered", ("torch",), ARCHIVE, doubtful=("files",)),
    Case("torch_directory", ("torch",), ARCHIVE, doubtful=("files",)),
    Case("torch_legacy", ("torch",), ARCHIVE, doubtful=("raw", "in_place")),
    Case("torch_dcp", ("torch",), ("torch DCP",), share=0.3),
    Case("torch_dcp_async", ("torch",), ("torch DCP",)),
    Case(
        "torch_dcp_safetensors",
        ("torch", "safetensors"),
        ("torch DCP", "safetensors, sharded"),
        doubtful=("files",),
    ),
    Case("accelerate_state", ("accelerate", "torch"), ("Accelerate save_state",), doubtful=("accelerate",)),
    Case("deepspeed_engine", ("deepspeed", "torch"), ("DeepSpeed",), doubtful=("accelerate",)),
    Case("hf_trainer", ("transformers", "torch", "accelerate"), ("Hugging Face Trainer",)),
    Case(
        "imitated_trainer_ranks", (), ("Hugging Face Trainer, several processes",), doubtful=("accelerate",)
    ),
    Case(
        "safetensors_sharded",
        ("transformers", "torch", "safetensors"),
        ("safetensors, sharded", "Hugging Face save_pretrained"),
        doubtful=("accelerate",),
    ),
    Case("safetensors_single", ("safetensors", "numpy"), ("safetensors, single",)),
    Case("lightning_callback", ("lightning", "torch"), ("Lightning",)),
    Case("lightning_link", ("lightning", "torch"), ("Lightning",)),
    Case("keras_archive", ("keras", "tensorflow"), ARCHIVE, share=0.5),
    Case("keras_weights", ("keras", "tensorflow"), doubtful=("hdf5",), share=0.5),
    Case("tensorflow_saver", ("tensorflow",), ("TensorFlow Saver",)),
    Case("tensorflow_savedmodel", ("tensorflow",), ("TensorFlow SavedModel",)),
    Case("orbax_manager", ("orbax", "jax"), ("Orbax",), share=0.7),
    Case("megatron_core", ("megatron", "torch"), ("Megatron-LM",), doubtful=("megatron",), share=0.3),
    Case("paddle_save", ("paddle",), ("Paddle",), doubtful=("paddle",)),
    Case("xgboost_checkpoints", ("xgboost",), doubtful=("files",)),
    Case("lightgbm_snapshots", ("lightgbm",), doubtful=("raw", "sized")),
    Case("hdf5_files", ("h5py",), doubtful=("hdf5", "patched")),
    Case("numpy_archives", ("numpy",), ARCHIVE, doubtful=("archives", "in_place")),
    Case("numpy_arrays", ("numpy",), doubtful=("raw", "in_place")),
    Case("numpy_memmap_new", ("numpy",), doubtful=("mapped",)),
    Case("numpy_memmap", ("numpy",), doubtful=("patched",)),
    Case("onnx_external", ("onnx",), doubtful=("files", "patched")),
    Case("joblib_dump", ("joblib", "numpy"), doubtful=("raw", "sized", "in_place")),
    Case("archive_files", doubtful=("archives", "sized")),
    Case("pickle_files"),
    Case("raw_files", doubtful=("raw", "patched")),
    Case("synced_files", doubtful=("raw", "slow")),
    Case("imitated_files", doubtful=("files", "in_place")),
    Case("numbered_suffixes", doubtful=("raw",)),
    Case("imitated_shards", frameworks=("shards, numbered",), doubtful=("raw",)),
    Case("copied_directory", doubtful=("files", "in_place")),
    Case("overwritten_directory", ("torch",), ARCHIVE, doubtful=("files",)),
    Case("renamed_directory"),
    Case("renamed_file"),
)


@pytest.fixture
def campaign(tmp_path, interpreter, environment, needed):
    """Runs a program's campaign and reports."""
    servers = []

    def start(case: Case, part: str = "", *, gang: bool = False, **variables: str) -> Report:
        needed(*case.modules)
        program = PROGRAMS / f"{case.program}.py"
        servers.append(Server(interpreter, program, {**environment, **variables}, tmp_path / "server.log"))
        with TemporaryDirectory(dir=memory(tmp_path)) as folder:
            found = Campaign(servers[-1], Path(folder), part, gang=gang)
            found.fail_all(found.watch(), int(RUNS * case.share), SEED)
        if REPORT:
            Path(REPORT, f"{case.program}{part.replace('/', '-')}.json").write_text(
                json.dumps(vars(found.report), indent=1)
            )
        return found.report

    yield start
    for server in servers:
        server.close()


def memory(path: Path) -> Path:
    """A file system in memory, if there is one."""
    return Path("/dev/shm") if Path("/dev/shm").is_dir() else path


ROWS = {row.key: row for row in DOUBTFUL_WRITERS}


KINDS = {
    Which.FIRST: ("first", "second"),
    Which.EACH: ("first", "second", "later"),
    Which.ALL: ("first", "second", "later", "followed"),
}
NEEDED = {Which.FIRST: {"first"}, Which.EACH: {"second", "later"}, Which.ALL: {"followed"}}


AFTER_A_FAILURE = {"later, carried on"}
"""What follows a save that failed is compared with it: it is like the first of its kind."""


def check(report: Report, doubtful: tuple[str, ...] = ()) -> None:
    """Nothing incomplete was sure, and all that was complete was sure in time, but for the table."""
    rows = [ROWS[key] for key in doubtful]
    hidden = any(row.hides_errors for row in rows)
    torn = {how for how in report.torn if not (hidden and "ended with 0" in how)}
    assert torn == set()
    late = {"first" if one in AFTER_A_FAILURE else one.partition(",")[0] for one in report.unsure}
    assert late <= {kind for row in rows for kind in KINDS[row.which]}, report.examples
    assert all(late & NEEDED[row.which] for row in rows), "an exception is not needed"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.program)
def test_nothing_incomplete_is_sure_and_what_is_complete_is(case, campaign):
    check(campaign(case), case.doubtful)


def test_a_copy_from_another_mount(tmp_path, campaign):
    """Lightning moves its files in from TMPDIR: a copy if that is another mount."""
    case = next(case for case in CASES if case.program == "lightning_callback")
    with TemporaryDirectory(dir="/var/tmp") as folder:
        if Path(folder).stat().st_dev == memory(tmp_path).stat().st_dev:
            pytest.skip("there is only one file system")
        check(campaign(case, TMPDIR=folder))


@pytest.mark.parametrize("pod", [0, 1])
def test_each_pod_of_a_gang_has_its_part(pod, campaign):
    case = Case("torch_dcp_pods", ("torch",), share=0.3)
    check(campaign(case, f"pod-{pod}", gang=pod > 0), ("files",) if pod else ())


def test_every_framework_and_every_exception_has_a_case():
    assert {name for case in CASES for name in case.frameworks} == {rule.name for rule in FRAMEWORK_RULES}
    assert {key for case in CASES for key in case.doubtful} == ROWS.keys()

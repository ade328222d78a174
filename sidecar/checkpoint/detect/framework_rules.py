"""How each training framework writes a checkpoint: one table of file names, printed in `docs/writers.md`.

A pattern is a relative name. `…` stands for a path prefix, the same in all patterns of a rule and possibly
empty; `<>` for a prefix of that form; `*` for part of a name; `#` for digits.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class FrameworkRule:
    """How one framework writes a checkpoint.

    Attributes:
        name: The framework.
        recognised_by: Patterns of its files.
        written_last: Patterns of what it writes last; empty if nothing can be relied on.
        blocking: Incomplete until `written_last` exists; otherwise doubtful.
        last_is_newest: An overwrite keeps the old `written_last` until the end, so it must not be older than
            the recognised files.
        coordinator_only: Only the coordinator's pod gets `written_last`; other pods do not wait for it.
        numbered_shards: The recognised files are shards whose names carry their number and count.
        proves: Patterns of files that are written after everything else: if one is the newest file of a
            checkpoint whose name is its prefix, the checkpoint is complete.
        unless: Patterns of files whose existence shows that others may follow.
        notes: What else decides.
        detects_torn: Names and formats alone always detect a torn checkpoint.
        source: The code that defines the order of writes.
        tested_with: The release that the tests run, or what they imitate.
    """

    name: str
    recognised_by: tuple[str, ...]
    written_last: tuple[str, ...] = ()
    blocking: bool = False
    last_is_newest: bool = False
    coordinator_only: bool = False
    numbered_shards: bool = False
    proves: tuple[str, ...] = ()
    unless: tuple[str, ...] = ()
    notes: str = ""
    detects_torn: bool = False
    source: str = ""
    tested_with: str = ""

    @cached_property
    def compiled(self) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
        """`recognised_by` and `written_last` as expressions; group 1 is the prefix."""
        return tuple(map(_compile, self.recognised_by)), tuple(map(_compile, self.written_last))

    @cached_property
    def compiled_proof(self) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
        """`proves` and `unless` as expressions; group 1 is the prefix."""
        return tuple(map(_compile, self.proves)), tuple(map(_compile, self.unless))


def _compile(pattern: str) -> re.Pattern[str]:
    text = re.escape(pattern).replace("…/", "(?:(.*)/|)").replace("…", "(.*)")
    text = text.replace("<", "(").replace(">", ")")
    return re.compile(text.replace(r"\*", "[^/]*").replace(r"\#", r"\d+"))


FRAMEWORK_RULES: tuple[FrameworkRule, ...] = (
    FrameworkRule(
        name="torch DCP",
        recognised_by=("…/*.distcp",),
        written_last=("…/.metadata", "…/__#.metadata"),
        blocking=True,
        last_is_newest=True,
        coordinator_only=True,
        proves=("…/.metadata", "…/__#.metadata"),
        unless=("…/common.pt",),
        notes="renamed from `.metadata.tmp`; every pod that holds rank 0's shards (`__0_#`) must have it",
        detects_torn=True,
        source="torch/distributed/checkpoint/filesystem.py, `finish`",
        tested_with="torch 2.15.0, two ranks, in one directory and in one each",
    ),
    FrameworkRule(
        name="TensorFlow Saver",
        recognised_by=("….data-#-of-#", "…_temp/part-#-of-#.*"),
        written_last=("….index",),
        blocking=True,
        last_is_newest=True,
        numbered_shards=True,
        proves=("….index",),
        notes="the index is written in place: it must end with the end marker of its table",
        detects_torn=True,
        source="tensorflow/core/util/tensor_bundle/tensor_bundle.cc, `MergeBundles`",
        tested_with="tensorflow 2.21.0, CheckpointManager",
    ),
    FrameworkRule(
        name="TensorFlow SavedModel",
        recognised_by=("…/variables/variables.*",),
        written_last=("…/saved_model.pb",),
        blocking=True,
        last_is_newest=True,
        proves=("…/fingerprint.pb",),
        notes="`fingerprint.pb` follows and proves it",
        source="tensorflow/python/saved_model/save.py, `save_and_return_nodes`",
        tested_with="tensorflow 2.21.0",
    ),
    FrameworkRule(
        name="Hugging Face Trainer",
        recognised_by=(
            "<checkpoint-#>/training_args.bin",
            "<checkpoint-#>/optimizer.pt",
            "<checkpoint-#>/scheduler.pt",
        ),
        written_last=("<checkpoint-#>/trainer_state.json",),
        blocking=True,
        last_is_newest=True,
        proves=("<checkpoint-#>/trainer_state.json",),
        unless=("<checkpoint-#>/rng_state_#.pth",),
        notes="JSON and zip files show their end; until the first recognised file exists, it is doubtful",
        source="transformers/trainer.py, `_save_checkpoint`",
        tested_with="transformers 5.23.0",
    ),
    FrameworkRule(
        name="Hugging Face Trainer, several processes",
        recognised_by=("<checkpoint-#>/rng_state_#.pth",),
        notes="no barrier follows: any rank's file may come after `trainer_state.json`",
        source="transformers/trainer.py, `_save_rng_state`",
        tested_with="imitated",
    ),
    FrameworkRule(
        name="Hugging Face save_pretrained",
        recognised_by=("…/config.json", "…/adapter_config.json"),
        written_last=("…/trainer_state.json",),
        notes="the configuration is written first; nothing shows that all weights exist",
        source="transformers/modeling_utils.py, `save_pretrained`",
        tested_with="transformers 5.23.0",
    ),
    FrameworkRule(
        name="safetensors, sharded",
        recognised_by=("…-#-of-#.safetensors", "…-#-of-#.bin"),
        written_last=("….safetensors.index.json", "….bin.index.json"),
        numbered_shards=True,
        notes="all numbered shards and all files in the index must exist; a partial overwrite looks complete",
        source="transformers/modeling_utils.py, `save_pretrained`",
        tested_with="transformers 5.23.0, safetensors 0.8.0",
    ),
    FrameworkRule(
        name="shards, numbered",
        recognised_by=("…-#-of-#.*", "…_#_of_#.*"),
        numbered_shards=True,
        notes="all must exist; numbers of less than four digits need a word: `rank-0-of-2`, `shard-1-of-2`",
        source="torch_xla/distributed/fsdp/state_dict_utils.py, `consolidate_sharded_model_checkpoints`",
        tested_with="imitated",
    ),
    FrameworkRule(
        name="safetensors, single",
        recognised_by=("….safetensors",),
        written_last=("….safetensors",),
        notes="the header's offsets must match the size; 0.8 writes `.tmp…` and renames it",
        detects_torn=True,
        source="safetensors/src/tensor.rs, `serialize_to_file`",
        tested_with="safetensors 0.8.0",
    ),
    FrameworkRule(
        name="Accelerate save_state",
        recognised_by=("…/optimizer.bin", "…/optimizer_#.bin"),
        written_last=("…/random_states_#.pkl",),
        notes="zip files show their end; registered objects follow the random states",
        source="accelerate/checkpointing.py, `save_accelerator_state`",
        tested_with="accelerate 1.15.0",
    ),
    FrameworkRule(
        name="Orbax",
        recognised_by=("…/_CHECKPOINT_METADATA",),
        written_last=("…/_CHECKPOINT_METADATA",),
        notes="the complete `STEP.orbax-checkpoint-tmp` directory is renamed",
        detects_torn=True,
        source="orbax/checkpoint/_src/path/atomicity.py, `finalize`",
        tested_with="orbax-checkpoint 0.12.8, asynchronous",
    ),
    FrameworkRule(
        name="DeepSpeed",
        recognised_by=("…/*/*_model_states.pt", "…/*/*_optim_states.pt"),
        notes="zip files show their end; rank 0 writes `latest` before the barrier: others may still write",
        source="deepspeed/runtime/engine.py, `save_checkpoint`",
        tested_with="deepspeed 0.19.8, ZeRO 1 on one rank, without a GPU",
    ),
    FrameworkRule(
        name="Megatron-LM",
        recognised_by=("…/iter_#/*.distcp", "…/iter_#/common.pt", "…/iter_#/mp_rank_*/*.pt"),
        notes="same as torch DCP in its format `torch_dist`; the tokenizer's files follow the tracker",
        source="megatron/training/checkpointing.py, `save_checkpoint`",
        tested_with="megatron-core 0.16.1, without a GPU; tracker and tokenizer imitated",
    ),
    FrameworkRule(
        name="Paddle",
        recognised_by=("….pdparams",),
        written_last=("….pdopt",),
        notes="pickles show their end; a `.pdparams` alone is doubtful if the one before had a `.pdopt`",
        source="paddle/framework/io.py, `save`",
        tested_with="paddlepaddle 3.3.1",
    ),
    FrameworkRule(
        name="Lightning",
        recognised_by=("….ckpt",),
        written_last=("….ckpt",),
        notes="zip files show their end; moved from TMPDIR, or copied if that is another mount",
        detects_torn=True,
        source="lightning/fabric/utilities/cloud_io.py, `_atomic_save`",
        tested_with="lightning 2.6.6, both mounts",
    ),
    FrameworkRule(
        name="torch.save, Keras archives, savez",
        recognised_by=("….pt", "….pth", "….keras", "….npz"),
        written_last=("….pt", "….pth", "….keras", "….npz"),
        notes="zip files end with a directory, written last; torch's older format does not show its end",
        detects_torn=True,
        source="torch/serialization.py, `_open_zipfile_writer_file`",
        tested_with="torch 2.15.0, keras 3.15.1",
    ),
    FrameworkRule(
        name="any other",
        recognised_by=(),
        notes="the short pause applies; the long one if no close was seen",
        tested_with="imitated",
    ),
)
"""All known frameworks. A checkpoint may match several rules: all of them apply."""
_PATTERNS = {pattern for rule in FRAMEWORK_RULES for pattern in rule.recognised_by + rule.written_last}
KNOWN_NAMES = re.compile("|".join(sorted({_compile(one.rpartition("/")[2]).pattern for one in _PATTERNS})))
"""Matches the last path component of every name in the table: most files of a large checkpoint match none."""

"""How each known writer leaves a checkpoint behind: one table of names, printed as `docs/writers.md`.

A pattern is a relative name in which `…` stands for one place, the same in all patterns of a row and possibly
the top, `<>` for such a place of that form, `*` for a part of a name, `#` for digits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

UNFINISHED: Mapping[str, str] = {
    "*.tmp": "torch DCP's .metadata.tmp, and the usual habit of writing aside and renaming",
    "*.tmp.*": "Lightning and TensorFlow habits: a random suffix after .tmp",
    "*.tmp" + "[0-9a-f]" * 32: "TensorFlow's atomic writes: `checkpoint`, saved_model.pb (file_io.py)",
    "*.partial": "download and copy tools",
    "*.part": "download and copy tools",
    "*.incomplete": "huggingface_hub",
    "*.orbax-checkpoint-tmp*": "Orbax renames the directory at the end",
    "*.__lock": "tensorstore, below Orbax: a file before it is renamed",
    "*.tempstate*": "TensorFlow's Saver: a bundle before it is renamed",
    ".tmp*": "Rust's tempfile: safetensors' sibling temporary (ran: 0.8.0 writes .tmpqowx2b)",
    ".*": "hidden at the top: editors, copy tools",
    "tmp*": "tempfile's names, at the top only",
    "*_temp": "TensorFlow's shards before they are merged (functional_saver.py), at the top only",
}
"""Names of unfinished files and directories, each with who uses it."""
IGNORED: Mapping[str, str] = {
    "zero_to_fp32.py": "DeepSpeed copies this program of its own to the top at every save",
    "zero_to_torch.py": "the same, since 0.19",
}
"""Names at the top that are no checkpoints and belong to none."""
AT_THE_TOP_ONLY = frozenset({".*", "tmp*", "*_temp"})


class Without(StrEnum):
    """What a checkpoint is as long as that is missing which its writer leaves last."""

    NEVER = "not whole"
    PAUSE = "whole after the long pause"


@dataclass(frozen=True)
class FrameworkRule:
    """One writer's habit.

    Attributes:
        name: Who writes so.
        signs: By which names it is recognised.
        last: What it leaves last; nothing that could be relied on where empty.
        without: What holds until that is there.
        ordered: An overwrite leaves the old one until the end, so it must be no older than the signs.
        led: Only the coordinator's pod gets it: on the others its absence tells nothing.
        counted: The signs are shards that say how many they are.
        kept: Where one of a series has what comes last, the next one has it too.
        besides: What else decides.
        alone: Whether all this tells a torn checkpoint without the pause; the pause alone protects otherwise.
        source: Where the order was read.
        tried: The release that wrote for the tests, or what was imitated.
    """

    name: str
    signs: tuple[str, ...]
    last: tuple[str, ...] = ()
    without: Without = Without.PAUSE
    ordered: bool = False
    led: bool = False
    counted: bool = False
    kept: bool = False
    besides: str = ""
    alone: bool = False
    source: str = ""
    tried: str = ""

    @property
    def ends(self) -> bool:
        """Whether what it leaves last tells that other files are done, rather than only itself."""
        return any("/" in pattern or pattern not in self.signs for pattern in self.last)

    @cached_property
    def patterns(self) -> tuple[tuple[re.Pattern[str], ...], tuple[re.Pattern[str], ...]]:
        """The signs and what comes last, compiled; group 1 is the place."""
        return tuple(map(_pattern, self.signs)), tuple(map(_pattern, self.last))


def _pattern(text: str) -> re.Pattern[str]:
    spelled = re.escape(text).replace("…/", "(?:(.*)/|)").replace("…", "(.*)")
    spelled = spelled.replace("<", "(").replace(">", ")")
    return re.compile(spelled.replace(r"\*", "[^/]*").replace(r"\#", r"\d+"))


FRAMEWORK_RULES: tuple[FrameworkRule, ...] = (
    FrameworkRule(
        name="torch DCP",
        signs=("…/*.distcp",),
        last=("…/.metadata", "…/__#.metadata"),
        without=Without.NEVER,
        ordered=True,
        led=True,
        besides="`.metadata.tmp` is renamed; rank 0's shards (`__0_#`) need it on every pod",
        alone=True,
        source="torch/distributed/checkpoint/filesystem.py, `finish`",
        tried="torch 2.15.0, two ranks, in one directory and in one each",
    ),
    FrameworkRule(
        name="TensorFlow Saver",
        signs=("….data-#-of-#", "…_temp/part-#-of-#.*"),
        last=("….index",),
        without=Without.NEVER,
        ordered=True,
        counted=True,
        besides="the index is written in place: its table must have its end",
        alone=True,
        source="tensorflow/core/util/tensor_bundle/tensor_bundle.cc, `MergeBundles`",
        tried="tensorflow 2.21.0, CheckpointManager",
    ),
    FrameworkRule(
        name="TensorFlow SavedModel",
        signs=("…/variables/variables.*",),
        last=("…/saved_model.pb",),
        without=Without.NEVER,
        ordered=True,
        besides="`fingerprint.pb` follows: the short pause covers it",
        source="tensorflow/python/saved_model/save.py, `save_and_return_nodes`",
        tried="tensorflow 2.21.0",
    ),
    FrameworkRule(
        name="Hugging Face Trainer",
        signs=(
            "<checkpoint-#>/training_args.bin",
            "<checkpoint-#>/optimizer.pt",
            "<checkpoint-#>/scheduler.pt",
        ),
        last=("<checkpoint-#>/trainer_state.json",),
        without=Without.NEVER,
        ordered=True,
        besides="JSON and zip are whole; before the first sign the pause protects",
        source="transformers/trainer.py, `_save_checkpoint`",
        tried="transformers 5.23.0",
    ),
    FrameworkRule(
        name="Hugging Face Trainer, several processes",
        signs=("<checkpoint-#>/rng_state_#.pth",),
        besides="no barrier follows: any rank's file may come after `trainer_state.json`",
        source="transformers/trainer.py, `_save_rng_state`",
        tried="imitated",
    ),
    FrameworkRule(
        name="Hugging Face save_pretrained",
        signs=("…/config.json", "…/adapter_config.json"),
        last=("…/trainer_state.json",),
        besides="the configuration comes first, nothing says that all weights are there",
        source="transformers/modeling_utils.py, `save_pretrained`",
        tried="transformers 5.23.0",
    ),
    FrameworkRule(
        name="safetensors, sharded",
        signs=("…-#-of-#.safetensors", "…-#-of-#.bin"),
        last=("….safetensors.index.json", "….bin.index.json"),
        counted=True,
        besides="all shards by their numbers, and all that the index lists; an overwrite looks whole between",
        source="transformers/modeling_utils.py, `save_pretrained`",
        tried="transformers 5.23.0, safetensors 0.8.0",
    ),
    FrameworkRule(
        name="safetensors, single",
        signs=("….safetensors",),
        last=("….safetensors",),
        besides="the header's offsets match the size; 0.8 writes `.tmp…` aside and renames it",
        alone=True,
        source="safetensors/src/tensor.rs, `serialize_to_file`",
        tried="safetensors 0.8.0",
    ),
    FrameworkRule(
        name="Accelerate save_state",
        signs=("…/optimizer.bin", "…/optimizer_#.bin"),
        last=("…/random_states_#.pkl",),
        besides="zip is whole; registered objects follow the random states",
        source="accelerate/checkpointing.py, `save_accelerator_state`",
        tried="accelerate 1.15.0",
    ),
    FrameworkRule(
        name="Orbax",
        signs=("…/_CHECKPOINT_METADATA",),
        last=("…/_CHECKPOINT_METADATA",),
        besides="`STEP.orbax-checkpoint-tmp` is renamed with all in it",
        alone=True,
        source="orbax/checkpoint/_src/path/atomicity.py, `finalize`",
        tried="orbax-checkpoint 0.12.8, asynchronous",
    ),
    FrameworkRule(
        name="DeepSpeed",
        signs=("…/*/*_model_states.pt", "…/*/*_optim_states.pt"),
        besides="zip is whole; rank 0 writes `latest` before the barrier, so other ranks may go on",
        source="deepspeed/runtime/engine.py, `save_checkpoint`",
        tried="deepspeed 0.19.8, ZeRO 1 on one rank, without a GPU",
    ),
    FrameworkRule(
        name="Megatron-LM",
        signs=("…/iter_#/*.distcp", "…/iter_#/common.pt", "…/iter_#/mp_rank_*/*.pt"),
        besides="as torch DCP in its format `torch_dist`; the tokenizer's files follow the tracker",
        source="megatron/training/checkpointing.py, `save_checkpoint`",
        tried="megatron-core 0.16.1, without a GPU; tracker and tokenizer imitated",
    ),
    FrameworkRule(
        name="Paddle",
        signs=("….pdparams",),
        last=("….pdopt",),
        kept=True,
        besides="pickles have their end; where the one before had a `.pdopt`, this one is not whole without",
        source="paddle/framework/io.py, `save`",
        tried="paddlepaddle 3.3.1",
    ),
    FrameworkRule(
        name="Lightning",
        signs=("….ckpt",),
        last=("….ckpt",),
        besides="zip is whole; moved in from TMPDIR, a copy where that is another mount",
        alone=True,
        source="lightning/fabric/utilities/cloud_io.py, `_atomic_save`",
        tried="lightning 2.6.6, both mounts",
    ),
    FrameworkRule(
        name="torch.save, Keras archives, savez",
        signs=("….pt", "….pth", "….keras", "….npz"),
        last=("….pt", "….pth", "….keras", "….npz"),
        besides="zip is whole: its directory at the end is written last; torch's older format cannot tell",
        alone=True,
        source="torch/serialization.py, `_open_zipfile_writer_file`",
        tried="torch 2.15.0, keras 3.15.1",
    ),
    FrameworkRule(
        name="any other",
        signs=(),
        besides="then quiet for the short pause; where no close was seen, for the long one",
        tried="imitated",
    ),
)
"""Every writer that is told apart. A checkpoint may show the signs of several: all of their rules hold."""
KNOWN = re.compile(
    "|".join(
        sorted(
            {
                _pattern(text.rpartition("/")[2]).pattern
                for row in FRAMEWORK_RULES
                for text in row.signs + row.last
            }
        )
    )
)
"""The last parts of all names in the table: most files of a large checkpoint have none of them."""

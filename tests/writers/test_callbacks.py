"""The callbacks of `docs/writers.md` with the real libraries: the first checkpoint is sure at once.

Each program ends with an error, which proves nothing, and only marked checkpoints are uploaded.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "writers.md"
BLOCK = re.compile(r"<!-- not run: needs (?P<library>\w+) -->\n```python\n(?P<code>.*?)```", re.DOTALL)

FIRST = """
import os, pathlib, site, sys
site.addsitedir(sys.argv[1])  # podferry and what it needs, after the libraries' own
import torch
directory = pathlib.Path(os.environ["PODFERRY_CHECKPOINTS"])
"""
BEFORE = {
    "lightning": """
import functools, lightning
from lightning.pytorch.callbacks import ModelCheckpoint
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 8)
    def training_step(self, batch, _):
        return self.layer(batch).sum()
    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())
Trainer = functools.partial(lightning.Trainer, max_epochs=1, logger=False, accelerator="cpu")
""",
    "transformers": """
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
model = BertForSequenceClassification(
    BertConfig(
        vocab_size=50, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
)
rows = [{"input_ids": torch.ones(8, dtype=torch.long), "labels": torch.tensor(1)}] * 8
arguments = TrainingArguments(
    str(directory), max_steps=2, save_steps=2, per_device_train_batch_size=1, report_to=[], use_cpu=True
)
""",
    "accelerate": """
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(8, 8)
model, optimizer = accelerator.prepare(model, torch.optim.Adam(model.parameters()))
step = 2
""",
}
AFTER = {
    "lightning": "trainer.fit(Model(), torch.utils.data.DataLoader(torch.ones(4, 8), batch_size=2))",
    "transformers": "trainer.train()",
    "accelerate": "",
}
LAST = """
if int(os.environ.get("RANK", "0")) == 0:
    import json
    from podferry.sidecar.control.http_client import AgentClient
    last = AgentClient(os.environ["PODFERRY_AGENT"]).wait_durable(60).last
    pathlib.Path(sys.argv[2]).write_text(json.dumps([last.name, *last.doubts] if last else None))
sys.stdout.flush()
os._exit(1)
"""
PYTHON_VERSION = "import sys; print(*sys.version_info[:2])"
PODFERRY_RUN = ("-m", "podferry.cli.main", "run", "--lineage", "marked", "--complete", "marked")
TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")


@pytest.fixture
def train(interpreter, environment, needed, tmp_path):
    """Runs a callback's block as a program; the newest durable checkpoint and its doubts, before it ended."""

    def run(library, launcher=()):
        needed("torch", library)
        version = subprocess.run(
            [interpreter, "-c", PYTHON_VERSION], capture_output=True, text=True, check=True
        )
        if version.stdout.split() != [str(part) for part in sys.version_info[:2]]:
            pytest.skip(f"{interpreter} cannot import the packages of {sys.executable}")
        program, answer = tmp_path / "train.py", tmp_path / "answer"
        blocks = {found["library"]: found["code"] for found in BLOCK.finditer(PAGE.read_text())}
        program.write_text("".join([FIRST, BEFORE[library], blocks[library], AFTER[library], LAST]))
        command = [interpreter, *launcher, program, sysconfig.get_path("purelib"), answer]
        done = subprocess.run(
            [sys.executable, *PODFERRY_RUN, "--checkpoints", tmp_path / "durable", "--", *command],
            env=os.environ | environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert answer.exists(), done.stdout + done.stderr
        return json.loads(answer.read_text())

    return run


@pytest.mark.parametrize(
    ("library", "launcher", "name"),
    [
        ("lightning", (), "epoch=0-step=2"),
        ("transformers", (), "checkpoint-2"),
        ("transformers", TORCHRUN, "checkpoint-2"),
        ("accelerate", (), "checkpoint-2"),
        ("accelerate", TORCHRUN, "checkpoint-2"),
    ],
    ids=lambda value: {(): "one", TORCHRUN: "two"}.get(value, value),
)
def test_the_first_checkpoint_is_sure_at_once(train, library, launcher, name):
    assert train(library, launcher) == [name]

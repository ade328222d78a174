"""Which program a command runs: each list has spellings of one command, and no two lists are the same."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.destination.provenance import RunOrigin
from podferry.contract.program import CommandFiles, read_program

SCRIPTS = {
    "train.py": "/work/train.py",
    "./train.py": "/work/train.py",
    "/link/train.py": "/work/train.py",
    "/work/train.py": "/work/train.py",
    "other/train.py": "/work/other/train.py",
    "run.sh": "/work/run.sh",
    "./run.sh": "/work/run.sh",
    "train": "/work/train",
}
FILES = CommandFiles(SCRIPTS.get, lambda word: word.removeprefix("/venv/bin/"))
SPELLINGS = [
    [
        "python train.py --lr 1",
        "python3 train.py --lr 1",
        "/x/venv/bin/python3.12 -u /work/train.py --lr 1",
        "python3.13t -OOu -X dev -Wignore ./train.py --lr 1",
        "pythonw --check-hash-based-pycs never /link/train.py --lr 1",
        "./train.py --lr 1",
        "/usr/bin/env python3 train.py --lr 1",
    ],
    ["python train.py --lr 2", "python -W error train.py --lr 2"],
    ["python other/train.py --lr 1"],
    ["python train.py -u --lr 1"],
    ["pypy3 train.py --lr 1"],
    [
        "python -m train --lr 1",
        "/usr/bin/python3 -u -m train --lr 1",
        "python -um train --lr 1",
        "python -mtrain --lr 1",
    ],
    ["python -c print(1)", "python3 -cprint(1)"],
    ["python -c print(2)"],
    ["python", "python3", "/usr/bin/python3.11 -i"],
    ["python -", "python3 -"],
    ["python --unknown train.py"],
    ["torchrun --nproc-per-node 4 train.py", "/venv/bin/torchrun --nproc-per-node 4 ./train.py"],
    ["torchrun --nproc-per-node 8 train.py"],
    [
        "python -m torch.distributed.run --nproc-per-node 4 train.py",
        "python3 -m torch.distributed.run --nproc-per-node 4 /work/train.py",
    ],
    [
        "accelerate launch --config_file c.yaml train.py",
        "/venv/bin/accelerate launch --config_file c.yaml ./train.py",
    ],
    ["uv run train.py", "uv run ./train.py"],
    ["nohup nice -n 5 python train.py", "nohup nice -n 5 /venv/bin/python3 ./train.py"],
    ["env A=1 python train.py", "env A=1 python3 train.py"],
    ["env A=2 python train.py"],
    [
        "bash run.sh x",
        "sh ./run.sh x",
        "/bin/bash -e run.sh x",
        "./run.sh x",
        "bash -eo pipefail -- run.sh x",
    ],
    [
        "bash -c run.sh",
        "sh -c run.sh",
        "bash -lc run.sh",
        "bash -euo pipefail -c run.sh",
        "bash -c -e run.sh",
    ],
    ["bash"],
    ["trainer --lr 1", "/venv/bin/trainer --lr 1"],
    ["/opt/trainer --lr 1"],
    ["bash train x", "sh train x"],
]


def words(text: str) -> list[str]:
    return read_program(text.split(), FILES).words


@pytest.mark.parametrize("texts", SPELLINGS, ids=lambda texts: texts[0])
def test_spellings_of_one_command_are_one_program(texts: list[str]) -> None:
    assert len({tuple(words(text)) for text in texts}) == 1


def test_other_commands_are_other_programs() -> None:
    firsts = [texts[0] for texts in SPELLINGS]
    assert [pair for pair in combinations(firsts, 2) if words(pair[0]) == words(pair[1])] == []


WORDS = st.sampled_from(["-m", "-c", "-u", "-", "x", "y", "train.py", "python", "sh", "-mx", "--z", ""])


@given(st.lists(WORDS, max_size=5))
def test_every_command_is_read(command: list[str]) -> None:
    read = read_program(command, FILES)
    assert len(read.words) <= len(command) + 1
    operands = [word for word in command if not word.startswith("-")]
    kept = " ".join(read.words)
    assert all(word in kept or SCRIPTS.get(word, word) in kept for word in operands[1:])


@pytest.mark.parametrize(
    ("text", "label", "description"),
    [
        ("python train.py", "train", "/work/train.py"),
        ("torchrun --nproc 4 train.py", "train", "/work/train.py"),
        ("python3 -m pkg.train", "pkg.train", "python -m pkg.train"),
        ("./run.sh", "run", "/work/run.sh"),
        ("python3 -c x", "python", "python -c"),
        ("bash -c x", "sh", "sh -c"),
        ("bash -lc TOKEN=secret", "sh", "sh -c"),
        ("bash -o pipefail -ec TOKEN=secret", "sh", "sh -c"),
        ("bash --rcfile x train", "train", "/work/train"),
        ("python3", "python", "python"),
        ("python -", "python", "python -"),
        ("trainer x.py", "trainer", "trainer"),
        ("", "run", ""),
    ],
)
def test_a_program_has_a_short_name_and_a_description(text: str, label: str, description: str) -> None:
    program = read_program(text.split(), FILES)
    assert (program.label, program.description) == (label, description)
    origin = RunOrigin(program.description, "/work", "host", "0")
    assert origin.label == (label if program.is_named else "")

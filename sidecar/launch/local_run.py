"""Identifies a run on this machine: looks at the files that its command names."""

from __future__ import annotations

import hashlib
import json
import shutil
import socket
from collections.abc import Sequence
from pathlib import Path, PurePath

from podferry.contract.code_version import CodeVersion, code_of_script
from podferry.contract.destination.provenance import RunOrigin, dataset_location
from podferry.contract.lineage import former_local_lineage, local_lineage, local_prefix
from podferry.contract.program import PYTHON, CommandFiles, Program, read_program
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.agent_config import ProgramRun

ENVIRONMENT_MARKS = ("pyvenv.cfg", "conda-meta")
"""In the directory of an environment, next to its `bin`."""
ARGUMENT_DIGITS = 12
KFP_MODULE_FLAG = "--component_module_path"
"""Of KFP's executor: the file with the component, in a directory that differs in every run."""
NOTEBOOK = ".ipynb"
MAX_SCRIPT_BYTES = 16 << 20
"""Larger programs are not hashed: every start would wait for it."""


def lineage_of_run(command: Sequence[str], spec: FerrySpec) -> str:
    """The default lineage of a command that runs in the current directory."""
    datasets = [(dataset.name, dataset_location(dataset.reference)) for dataset in spec.datasets]
    return local_lineage(program_of(command), str(Path.cwd().resolve()), datasets)


def describe_run(
    command: Sequence[str], former: Sequence[Sequence[str]], *, named: bool, in_python: bool
) -> ProgramRun:
    """What the agent records of a command that runs in the current directory.

    Args:
        command: What runs.
        former: The commands by which podferry 0.1 may have known it.
        named: Whether the user has named the lineage.
        in_python: Whether it calls `ferry`.
    """
    program = program_of(command)
    arguments = hashlib.sha256(json.dumps([program.launcher, program.arguments]).encode()).hexdigest()
    host, directory = socket.gethostname(), str(Path.cwd().resolve())
    origin = RunOrigin(program.description, directory, host, arguments[:ARGUMENT_DIGITS])
    code = code_of_run(command, program)
    if named:
        return ProgramRun(origin, in_python=in_python, code=code)
    lineages = dict.fromkeys(former_local_lineage(words) for words in former)
    prefixes = {local_prefix(program.label), *(f"{name.rpartition('.')[0]}." for name in lineages)}
    return ProgramRun(origin, tuple(sorted(prefixes)), tuple(lineages), in_python, code)


def code_of_run(command: Sequence[str], program: Program) -> CodeVersion | None:
    """The script of a program: of a KFP step, the file with its component; None if it has none.

    A notebook is none: running it changes its file.
    """
    words = list(command)
    step = words[words.index(KFP_MODULE_FLAG) + 1 :] if KFP_MODULE_FLAG in words else []
    script = Path(step[0] if step else program.name)
    try:
        if script.suffix != NOTEBOOK and script.is_file() and script.stat().st_size <= MAX_SCRIPT_BYTES:
            return code_of_script(script.read_bytes())
    except OSError:
        return None
    return None


def other_spellings(command: Sequence[str]) -> list[list[str]]:
    """The command as it is, and with the usual names of Python."""
    first = PurePath(command[0]).name if command else ""
    others = ("python", "python3") if PYTHON.fullmatch(first) else ()
    return [list(command), *([name, *command[1:]] for name in others)]


def program_of(command: Sequence[str]) -> Program:
    """What a command runs, with resolved paths."""
    return read_program(command, CommandFiles(_script_path, _program_name))


def _script_path(word: str) -> str | None:
    path = Path(word)
    return str(path.resolve()) if path.is_file() else None


def _program_name(word: str) -> str:
    """The name alone of a program that an environment provides: it is the same in another environment."""
    path = Path(word)
    if "/" not in word:
        return word
    environment = path.absolute().parent.parent
    provided = path.parent.name == "bin" and any((environment / mark).exists() for mark in ENVIRONMENT_MARKS)
    found = shutil.which(path.name)
    if provided or (found is not None and Path(found).resolve() == path.resolve()):
        return path.name
    return str(path.resolve())

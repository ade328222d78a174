"""Reads which program a command line runs, however it is written. Pure: the caller looks at files.

`python train.py`, `python3 -u ./train.py` and `/x/venv/bin/python3.12 /work/train.py` run one program with
the same arguments. Words that are not understood are kept as they are, so two commands are equal only if they
differ in spelling alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

PYTHON = re.compile(r"(python|pypy)w?[0-9.]*t?")
SHELLS = frozenset({"sh", "bash", "dash", "ksh", "zsh"})
SHELL = "sh"
SHELL_LONG_OPTIONS = frozenset({"--rcfile", "--init-file"})
"""Those with a value."""
NAMELESS = frozenset({"", "-", "-c"})
SUFFIXES = {".py": "python", ".sh": SHELL, ".ipynb": "", ".jl": "", ".R": "", ".r": "", ".pl": "", ".lua": ""}
"""Of scripts, with the kind of interpreter that starts them directly; empty if only a launcher does."""
PYTHON_LETTERS = re.compile(r"-[bBdEiIOPqsSuvx]*(?=[mcWX]|$)")
"""Python's options without a value, which may be grouped. Source: docs.python.org/3/using/cmdline.html."""
LONG_OPTION = "--check-hash-based-pycs"
LAUNCHER_MODULES = frozenset(
    {
        *("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch"),
        *("deepspeed.launcher.runner", "paddle.distributed.launch", "coverage", "cProfile", "pdb", "debugpy"),
    }
)
"""Modules that run the script among their arguments."""


@dataclass(frozen=True, slots=True)
class CommandFiles:
    """What is known about the files that a command names.

    Attributes:
        script: The resolved path of an existing file, or None.
        program: The identity of the first word: a resolved path, or the name of an environment's program.
    """

    script: Callable[[str], str | None] = lambda word: None
    program: Callable[[str], str] = lambda word: word


@dataclass(frozen=True, slots=True)
class Program:
    """A program and its arguments.

    Attributes:
        launcher: What starts it: the kind of interpreter, or a launcher with its options.
        name: A resolved path, `-m MODULE`, `-c` or the name of a program; empty for an interpreter alone.
        arguments: Those of the program, as they were written; first the code after `-c`.
    """

    launcher: tuple[str, ...]
    name: str
    arguments: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """A short name: the script without its suffix, the module, the program, or the interpreter."""
        module = self.name.removeprefix("-m ")
        if module != self.name:
            return module
        named = self.name if self.is_named else next(iter(self.launcher), "run")
        path = PurePosixPath(named)
        return path.stem if path.suffix in SUFFIXES else path.name

    @property
    def description(self) -> str:
        """What runs, for people, without its arguments: `/work/train.py`, `python -m pkg.train`, `sh -c`."""
        interpreted = self.name in NAMELESS or self.name.startswith("-m ")
        return " ".join(filter(None, (*self.launcher[-1:], self.name))) if interpreted else self.name

    @property
    def is_named(self) -> bool:
        """Whether it has a path, a module or a name, rather than code or an interpreter alone."""
        return self.name not in NAMELESS

    @property
    def words(self) -> list[str]:
        """All of it, in a form that is equal for all spellings."""
        return [*self.launcher, self.name, *self.arguments]


def read_program(command: Sequence[str], files: CommandFiles = CommandFiles()) -> Program:
    """The program that a command runs.

    It is the script, module or code of an interpreter, else the first word that is a script, else the first
    word of all. Options of Python itself, such as `-u`, do not distinguish runs.
    """
    launcher: list[str] = []
    rest = command
    while rest:
        word, rest = rest[0], rest[1:]
        base = PurePosixPath(word).name
        if PYTHON.fullmatch(base):
            launcher.append("pypy" if base.startswith("pypy") else "python")
            option, rest = _python_target(rest)
            if option != "-m" or rest[0] not in LAUNCHER_MODULES:
                return _of_interpreter(launcher, option, rest, files)
            launcher += [option, rest[0]]
            rest = rest[1:]
        elif base in SHELLS:
            return _of_interpreter([*launcher, SHELL], *_shell_target(rest), files)
        elif (path := _script(word, files)) is not None:
            kind = SUFFIXES[PurePosixPath(word).suffix]
            return Program(tuple(launcher or filter(None, [kind])), path, tuple(rest))
        elif base != "env" or _changes_environment(rest):
            launcher.append(word if launcher else files.program(word))
    return Program((), launcher[0] if launcher else "", tuple(launcher[1:]))


def _of_interpreter(launcher: list[str], option: str, rest: Sequence[str], files: CommandFiles) -> Program:
    """What an interpreter runs: `rest` begins with a module, with code or with a script."""
    if option == "-c":
        return Program(tuple(launcher), "-c", tuple(rest))
    if not rest:
        return Program(tuple(launcher), "")
    name = f"-m {rest[0]}" if option == "-m" else files.script(rest[0]) or rest[0]
    return Program(tuple(launcher), name, tuple(rest[1:]))


def _python_target(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The words from Python's script, module or code on, and the option before them: `-m`, `-c` or none.

    Letters may be grouped and have their value attached: `-um pkg.train`, `-Xdev`, `-mpkg.train`.
    """
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] != "-":
        letters, word = PYTHON_LETTERS.match(words[at]), words[at]
        rest = word[letters.end() :] if letters else word
        if letters and rest[:1] in {"m", "c"} and (rest[1:] or at + 1 < len(words)):
            return f"-{rest[0]}", [rest[1:], *words[at + 1 :]] if rest[1:] else words[at + 1 :]
        if rest and rest[:1] not in {"W", "X"} and word != LONG_OPTION:
            break  # unknown: it may name what runs
        at += 2 if rest in {"W", "X", LONG_OPTION} else 1
    return "", words[at:]


def _changes_environment(words: Sequence[str]) -> bool:
    """Whether `env` does more than to find the program."""
    return not words or words[0].startswith("-") or "=" in words[0]


def _shell_target(words: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The words from a shell's script or code on, and `-c` for code, which may contain secrets.

    Letters may be grouped: `-lc CODE`, `-euo pipefail SCRIPT`. Source: bash(1), "OPTIONS".
    """
    at, option = 0, ""
    while at < len(words) and words[at][:1] in {"-", "+"}:
        word, letters = words[at], "" if words[at].startswith("--") else words[at][1:]
        at += 1
        if word in {"-", "--"}:
            break
        if "c" in letters and word.startswith("-"):
            option = "-c"
        if word in SHELL_LONG_OPTIONS or "o" in letters.lower():
            at += 1
    return option, words[at:]


def _script(word: str, files: CommandFiles) -> str | None:
    return files.script(word) if PurePosixPath(word).suffix in SUFFIXES else None

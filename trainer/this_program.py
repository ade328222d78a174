"""The command that this process runs, as `podferry run` would be given it.

So a program keeps its lineage whether it is started under `podferry run` or calls `ferry` itself.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import PurePath

NOTEBOOK_VARIABLE = "JPY_SESSION_NAME"
"""Jupyter sets it to the path of the notebook, or to a console's name (jupyter_server, `get_kernel_env`)."""
NOTEBOOK_GLOBAL = "__vsc_ipynb_file__"
"""VS Code sets it to the path of the notebook in the notebook's own variables."""
KERNELS = ("ipykernel_launcher.py", "colab_kernel_launcher.py")


def this_command() -> list[str]:
    """The command of this process."""
    main = vars(sys.modules["__main__"])
    return command_of(sys.argv, sys.orig_argv, main, os.environ)


def is_notebook(argv0: str) -> bool:
    """Whether a process with this `sys.argv[0]` runs a notebook."""
    return PurePath(argv0).name in KERNELS


def command_of(
    argv: Sequence[str], original: Sequence[str], main: Mapping[str, object], environment: Mapping[str, str]
) -> list[str]:
    """The command of a process.

    A notebook is known by its path. If that is unknown, its kernel's command is returned, which differs in
    every session: two notebooks must not be taken for one.

    Args:
        argv: `sys.argv`. A process that `multiprocessing` has spawned has that of its parent.
        original: `sys.orig_argv`, with the code after `-c`.
        main: The variables of `__main__`.
        environment: Of the process.
    """
    first, arguments = (argv[0] if argv else ""), list(argv[1:])
    if is_notebook(first):
        notebook = str(main.get(NOTEBOOK_GLOBAL) or environment.get(NOTEBOOK_VARIABLE))
        return ["jupyter", notebook] if notebook.endswith(".ipynb") else ["python", *argv]
    module = getattr(main.get("__spec__"), "name", None)
    if module:
        return ["python", "-m", module.removesuffix(".__main__"), *arguments]
    if first == "-c":
        return ["python", "-c", *_code(original), *arguments]
    if first in {"", "-"}:
        return ["python"]
    # The program may have changed the directory since it started; Python made this path absolute before.
    file = str(main.get("__file__") or "")
    script = file if PurePath(file).name == PurePath(first).name else first
    return ["python", script, *arguments] if script.endswith(".py") else [script, *arguments]


def _code(original: Sequence[str]) -> Sequence[str]:
    """The code after `-c`, unless it is that of `multiprocessing`, which differs in every process."""
    at = next((at for at, word in enumerate(original) if at and word.endswith("c") and word[0] == "-"), None)
    code = original[at + 1 : at + 2] if at is not None else []
    return [] if any(word.startswith("from multiprocessing") for word in code) else code

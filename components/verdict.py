"""Ends a step with its verdict: the problems and an exit code, instead of a traceback.

KFP shows the log of a step alone. Its last lines are what is wrong with the user's data or settings; only an
error of podferry itself has a traceback.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from podferry.components.log_tables import print_line
from podferry.contract.errors import FerryError
from podferry.contract.exit_codes import EXIT_FAILED

ERROR = "error: "
"""How each line of a verdict begins."""
P = ParamSpec("P")
T = TypeVar("T")


def verdict(run: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
    """Call a step's runner. If it raises what podferry raises deliberately, print the problems and exit.

    The exit code is the error's `exit_code`, if it has one, else 1 as for the command's verbs.
    """
    try:
        return run(*arguments, **keywords)
    except FerryError as error:
        for problem in error.problems:
            print_line(f"{ERROR}{problem}")
        raise SystemExit(getattr(error, "exit_code", EXIT_FAILED)) from error

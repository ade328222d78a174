"""Runs a user's training function under `ferry`, and writes what KFP's UI shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from numbers import Real
from typing import Any

from podferry.components.log_tables import print_line
from podferry.components.reports.render import html, write
from podferry.components.reports.training_page import training_page
from podferry.components.verdict import verdict
from podferry.trainer import Ferry, ferry


def run_training(
    function: Callable[..., Any],
    places: Mapping[str, Any],
    arguments: Mapping[str, Any],
    report: str,
    metrics: Any,
) -> None:
    """Call `function(f, **arguments)`; leaving it means durable, or the step fails with its verdict.

    Args:
        function: The user's.
        places: Keywords of `ferry`; an empty text is left out.
        arguments: The component's other inputs.
        report: Path of the page.
        metrics: KFP's artifact, which gets the numbers that the function returns.
    """
    verdict(
        _run, function, {key: one for key, one in places.items() if one != ""}, arguments, report, metrics
    )


def _run(
    function: Callable[..., Any],
    places: Mapping[str, Any],
    arguments: Mapping[str, Any],
    report: str,
    metrics: Any,
) -> None:
    with ferry(**places) as f:
        returned = _call(function, f, arguments)
        if f.checkpoints is not None:
            f.wait_durable(final=True)
        write(report, html(training_page(f.status(), f.mode)))
    _log_metrics(metrics, returned)


def _log_metrics(metrics: Any, returned: Any) -> None:
    """Log the numbers that a function returned by name, and say what else it returned."""
    if not isinstance(returned, Mapping | None):
        print_line(f"no metrics: the function returned no dict ({type(returned).__name__})")
        return
    for name, value in (returned or {}).items():
        if isinstance(value, Real):  # as NumPy's numbers are
            metrics.log_metric(name, float(value))
        else:
            print_line(f"{name} is no metric: it is no number ({type(value).__name__})")


def _call(function: Callable[..., Any], f: Ferry, arguments: Mapping[str, Any]) -> Any:
    """Call the function; what fails on a path that is None says which input the step lacks."""
    try:
        return function(f, **arguments)
    except (TypeError, AttributeError) as error:
        missing = [name for name in ("dataset", "checkpoints") if getattr(f, name) is None]
        if missing and "NoneType" in str(error):
            error.add_note("\n".join(f"f.{one} is None: the step was given no {one}=" for one in missing))
        raise

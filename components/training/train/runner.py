"""Runs a user's training function under `ferry`, and writes what KFP's UI shows of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from podferry.components.reports.render import html, write
from podferry.components.reports.training_page import training_page
from podferry.components.verdict import verdict
from podferry.trainer import ferry


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
        returned = function(f, **arguments)
        if f.checkpoints is not None:
            f.wait_durable(final=True)
        write(report, html(training_page(f.status(), f.mode)))
    for name, value in (returned or {}).items() if isinstance(returned, Mapping | None) else ():
        if isinstance(value, int | float):
            metrics.log_metric(name, float(value))

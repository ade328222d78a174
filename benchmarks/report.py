"""What a benchmark found: tables for people, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from harness import Finding, Result
from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parents[1] / "build" / "bench"


def machine(**more: str) -> dict[str, str]:
    """What the figures were measured on, and with."""
    return {
        "cpu": _first("/proc/cpuinfo", "model name") or platform.processor(),
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": _first("/proc/meminfo", "MemTotal"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        **more,
    }


def _first(path: str, name: str) -> str:
    lines = Path(path).read_text().splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def report(
    name: str,
    about: Mapping[str, str],
    results: Sequence[Result],
    findings: Sequence[Finding] = (),
    more: Mapping[str, Sequence[Mapping[str, str]]] | None = None,
) -> Path:
    """Print tables, and write the same as JSON.

    Args:
        name: Of the benchmark: titles the table, names the document.
        about: See `machine`.
        results: Times.
        findings: What is no time.
        more: Tables of a benchmark's own, by their titles; each row holds the same columns.

    Returns:
        Where the document is.
    """
    console = Console(width=max(160, Console().width))
    if results:
        console.print(_times_table(name, results))
    if findings:
        console.print(_findings_table(findings))
    for title, rows in (more or {}).items():
        console.print(_table_of(title, rows))
    console.print("\n".join(f"{key}: {value}" for key, value in about.items()), highlight=False)
    RESULTS.mkdir(parents=True, exist_ok=True)
    path = RESULTS / f"{name}.json"
    cases = [asdict(result) for result in results]
    document: dict[str, object] = {"machine": dict(about), "cases": cases, **(more or {})}
    if findings:
        document["findings"] = [asdict(finding) for finding in findings]
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


def _times_table(name: str, results: Sequence[Result]) -> Table:
    columns = {
        "case": "left",
        "peer": "left",
        "podferry s": "right",
        "peer s": "right",
        "limit s": "right",
        "peer / podferry": "right",
        "95%": "right",
        "at least": "right",
        "pairs": "right",
    }
    table = Table(title=f"{name}: medians")
    for column, justify in columns.items():
        table.add_column(column, justify=justify)  # type: ignore[arg-type]  # the table above holds literals
    for result in results:
        times = (f"{seconds:.3f}" for seconds in (result.ours_s, result.peer_s, result.limit_s))
        bounds = f"{result.low:.2f} to {result.high:.2f}"
        least = "" if result.least is None else f"{result.least:.2f}{_reached(result, result.least)}"
        row = (result.case, result.peer, *times, f"{result.ratio:.2f}", bounds, least, str(result.pairs))
        table.add_row(*row)
    return table


def _reached(result: Result, least: float) -> str:
    """What the interval says of the ratio that is to be reached."""
    if result.low >= least:
        return " yes"
    return " NO" if result.high < least else " unsure"


def _table_of(title: str, rows: Sequence[Mapping[str, str]]) -> Table:
    table = Table(*rows[0], title=title)
    for row in rows:
        table.add_row(*row.values())
    return table


def _findings_table(findings: Sequence[Finding]) -> Table:
    table = Table("what", "found", "wanted", "reached")
    for finding in findings:
        table.add_row(finding.what, finding.found, finding.wanted, "yes" if finding.reached else "NO")
    return table

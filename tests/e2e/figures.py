"""Figures that tests measure: written to build/e2e/figures.json, and printed at the end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILE = ROOT / "build" / "e2e" / "figures.json"


class Figures:
    """Sections of named figures; each name ends with its unit."""

    def __init__(self) -> None:
        self.sections: dict[str, Any] = {}

    def record(self, section: str, values: Any) -> None:
        """Record measurements, and write all so far."""
        self.sections[section] = values
        FILE.parent.mkdir(parents=True, exist_ok=True)
        FILE.write_text(json.dumps(self.sections, indent=2) + "\n")

    def lines(self) -> list[str]:
        """For people."""
        shown = []
        for section, values in self.sections.items():
            rows = (
                values if isinstance(values, list) else [{"": name, **_row(values[name])} for name in values]
            )
            shown += [f"{section}:", *(f"  {_line(row)}" for row in rows)]
        return shown


def _row(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {"is": value}


def _line(row: dict[str, Any]) -> str:
    first, *rest = row.items()
    return f"{first[1]}: " + ", ".join(
        str(value) if name == "is" else f"{name} {value}" for name, value in rest
    )

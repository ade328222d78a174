"""The table of docs/stores.md, declared by the engines: `python -m tests.support.stores_table` writes it."""

from __future__ import annotations

from pathlib import Path

from podferry.storage.engine import Engine, Scheme
from podferry.storage.engines import BUILT_IN
from podferry.storage.fsspec.install_hints import EXTRAS as FSSPEC_EXTRAS

PAGE = Path(__file__).parents[2] / "docs/stores.md"
START, END = "<!-- what the engines declare -->\n", "<!-- the end of it -->\n"
HEAD = (
    "scheme",
    "tested on",
    "reads parts",
    "checksums",
    "checkpoints",
    "exclusive commits",
    "resumes uploads",
    "connection pool",
    "to install",
)
NO = "–"  # noqa: RUF001 - as in the other tables
UNLISTED = ("memory",)


def table() -> str:
    """The table in Markdown."""
    rows = [HEAD, ("---",) * len(HEAD), *(_row(engine, scheme) for engine, scheme in _schemes())]
    return "\n" + "".join(f"| {' | '.join(row)} |\n" for row in rows) + "\n"


def _schemes() -> list[tuple[Engine, Scheme]]:
    found = [(engine, scheme) for engine in BUILT_IN for scheme in engine.schemes]
    return [(engine, scheme) for engine, scheme in found if scheme.names[0] not in UNLISTED]


def _row(engine: Engine, scheme: Scheme) -> tuple[str, ...]:
    names = ", ".join(f"`{name}://`" for name in scheme.names)
    able = (scheme.writable, scheme.exclusive_create, scheme.resumed_uploads, scheme.connection_pool)
    return (
        f"[{names}](stores/{scheme.page}.md)" if scheme.page else names,
        scheme.tested_on or NO,
        _word(scheme.ranges),
        scheme.checksums or NO,
        *map(_word, able),
        _install(engine, scheme),
    )


def _install(engine: Engine, scheme: Scheme) -> str:
    extra = FSSPEC_EXTRAS.get(scheme.names[0]) if engine.name == "fsspec" else engine.extra
    return f"`pip install 'podferry[{extra}]'`" if extra else NO


def _word(able: bool) -> str:
    return "yes" if able else NO


def with_table(text: str) -> str:
    """The page with the table between its marks."""
    before, _, rest = text.partition(START)
    _, _, after = rest.partition(END)
    return before + START + table() + END + after


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text()))

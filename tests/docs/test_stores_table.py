"""docs/stores.md shows what the engines declare, and each page that it links to exists."""

from podferry.storage.engines import BUILT_IN
from tests.support.stores_table import PAGE, with_table


def test_the_table_is_what_the_engines_declare():
    assert PAGE.read_text() == with_table(PAGE.read_text()), "run: python -m tests.support.stores_table"


def test_the_pages_exist():
    pages = {scheme.page for engine in BUILT_IN for scheme in engine.schemes if scheme.page}
    assert [page for page in pages if not (PAGE.parent / "stores" / f"{page}.md").exists()] == []


def test_every_table_row_is_tested_on_something():
    untested = {scheme.names[0] for engine in BUILT_IN for scheme in engine.schemes if not scheme.tested_on}
    assert untested == set()

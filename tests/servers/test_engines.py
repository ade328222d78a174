"""What the engines declare is what their stores can do, with all their packages installed."""

import pytest

from podferry.storage.engines import BUILT_IN
from tests.support.declared import declared, found_at

DECLARED = [
    pytest.param(engine, scheme, id=f"{engine.name} {scheme.names[0]}")
    for engine in BUILT_IN
    for scheme in engine.schemes
]


@pytest.mark.parametrize(("engine", "scheme"), DECLARED)
async def test_a_store_can_do_what_its_engine_declares(engine, scheme):
    assert await found_at(engine, scheme) == declared(scheme)

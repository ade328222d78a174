import itertools

import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.memory.store import CONTENTS

COUNTER = itertools.count()


@pytest.fixture
def bucket():
    """An unused bucket in memory."""
    name = f"listing-{next(COUNTER)}"
    yield parse_uri(f"memory://{name}")
    CONTENTS.pop(name, None)

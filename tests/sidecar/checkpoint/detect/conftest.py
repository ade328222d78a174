"""A detector whose clock a test moves."""

from __future__ import annotations

import pytest

from tests.support.detector_bench import Bench


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture
def one_life(tmp_path):
    return Bench(tmp_path, one_life=True)

"""The pods of a run as an API server had them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.pod_api_server import api_server

__all__ = ["api_server"]

RECORDED = Path(__file__).parents[3] / "data" / "kfp-run"


@pytest.fixture
def pods() -> dict[str, dict[str, Any]]:
    """Recorded pods by name: `refused`, `failed`, `no-image`, `too-big`, `good`."""
    return {path.stem: json.loads(path.read_text()) for path in sorted(RECORDED.glob("*.json"))}

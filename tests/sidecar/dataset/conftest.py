"""A dataset in memory, and jobs that fetch it."""

from __future__ import annotations

import pytest

from podferry.contract.spec import DatasetSpec
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from tests.support.dataset_site import FILES, memory_dataset


@pytest.fixture
def content():
    with memory_dataset(FILES) as made:
        yield made


@pytest.fixture
def job(content, tmp_path):
    """Successive jobs on one staging directory, as after restarts; each ends the previous one."""
    (tmp_path / "stage").mkdir()
    made = []

    def making(reference=None, **settings):
        if made:
            made[-1].staging.close()
        spec = DatasetSpec(str(reference or content.uri), str(tmp_path / "stage"), **settings)
        placement = DatasetPlacement(tmp_path / "stage", tmp_path / "claim")
        made.append(DatasetJob(spec, placement, PrefetchSettings()))
        return made[-1]

    yield making
    if made:
        made[-1].staging.close()

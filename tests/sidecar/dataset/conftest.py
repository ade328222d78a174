"""A dataset in memory, and jobs that fetch it."""

from __future__ import annotations

import pytest

from podferry.contract.spec import DatasetSpec
from podferry.contract.uri import parse_uri
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.dataset.dataset_job import DatasetJob
from podferry.sidecar.dataset.dataset_placement import DatasetPlacement
from podferry.storage.memory.store import CONTENTS, Content
from tests.support.dataset_site import COUNTER, FILES


@pytest.fixture
def content():
    name = f"dataset-{next(COUNTER)}"
    made = CONTENTS[name] = Content()
    made.objects.update(FILES)
    made.uri = parse_uri(f"memory://{name}/d")
    yield made
    del CONTENTS[name]


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

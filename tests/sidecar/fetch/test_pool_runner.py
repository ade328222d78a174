import errno
import os

import pytest

from podferry.contract.errors import Refused
from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.sidecar.fetch.pool_runner import worker_count
from tests.support.object_server import FILES, RANGE, Rig


@pytest.mark.parametrize(
    ("jobs", "count", "max_processes", "expected"),
    [(10, 1000, None, 0), (10_000, 10**8, 1, 0), (10_000, 10**9, 3, 2), (100, 10**10, 2, 1), (10, 10, 4, 0)],
)
def test_only_large_plans_get_worker_processes(jobs, count, max_processes, expected):
    assert worker_count(jobs, count, max_processes) == expected


@pytest.mark.parametrize(
    ("count", "max_processes", "idle", "expected"),
    [(2 * 10**8, None, 0, 0), (2 * 10**8, 2, 1, 1), (2 * 10**8, 1, 1, 0), (10**7, 2, 1, 0), (10**9, 3, 1, 2)],
)
def test_a_worker_that_waits_is_used_for_less(count, max_processes, idle, expected):
    assert worker_count(10, count, max_processes, idle) == expected


@pytest.mark.parametrize("processes", [1, 2])
async def test_the_pools_alone_fetch_everything(stage, port, objects, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert not rig.fallback.reads
    assert rig.counters.files == len(FILES)
    assert rig.counters.bytes == sum(map(len, FILES.values()))
    assert rig.counters.connections == rig.counters.handed_over == rig.counters.discarded == 0
    assert {path.stat().st_mode & 0o777 for path in stage.root.rglob("*") if path.is_file()} == {0o640}
    assert sorted(objects.fetched("large")) == list(range(0, len(FILES["large"]), RANGE))


@pytest.mark.parametrize("processes", [1, 2])
async def test_a_full_volume_is_reported_from_any_process(stage, port, objects, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)

    def write_complete(number, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    # Worker processes write as they should; only this one fails.
    monkeypatch.setattr(stage, "write_complete", write_complete)
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    with pytest.raises(Refused, match="the volume was full"):
        await rig.prefetch().run()

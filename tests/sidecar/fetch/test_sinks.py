from __future__ import annotations

import pytest

from podferry.sidecar.config.tuning import PrefetchSettings
from podferry.sidecar.fetch import pool_runner
from podferry.storage.checksum.checksums import ChecksumKind
from tests.support.object_server import FILES, RANGE, Rig


@pytest.mark.parametrize("kind", [ChecksumKind.CRC64NVME, ChecksumKind.CRC32C, ChecksumKind.SHA256])
@pytest.mark.parametrize("processes", [1, 2])
async def test_damage_in_transit_is_found_and_repaired(stage, port, objects, kind, processes, monkeypatch):
    monkeypatch.setattr(pool_runner, "WORKER_SECONDS", 1e-9)
    objects.kind = kind
    objects.damaged = {("d/small-7", 0): 1, ("buffers", 0): 1, ("large", 3 * RANGE): 1}
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=processes))
    await rig.prefetch().run()
    assert rig.held() == FILES
    assert {name for name, _ in rig.fallback.reads} == {"d/small-7", "buffers", "large"}
    # One range after the other until it matches: none after the damaged one.
    assert [start for name, start in rig.fallback.reads if name == "large"][-1] == 3 * RANGE


async def test_without_verification_damage_is_kept(stage, port, objects):
    """So verification is what finds it above."""
    objects.damaged = {("d/small-7", 0): 1}
    rig = Rig(stage, port, PrefetchSettings(range_bytes=RANGE, processes=1, verify=False))
    await rig.prefetch().run()
    assert {name for name, data in rig.held().items() if data != FILES[name]} == {"d/small-7"}

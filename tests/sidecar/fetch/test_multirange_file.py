from __future__ import annotations

import pytest

from podferry.contract.errors import Corrupt
from tests.support.object_server import Rig


@pytest.mark.parametrize("name", ["d/small-7", "large"])
async def test_what_never_matches_its_checksum_is_named(stage, port, objects, name):
    objects.damaged = {(name, 0): 99}
    rig = Rig(stage, port)
    rig.fallback.damaged = True
    with pytest.raises(Corrupt, match=f"{name} is damaged.*does not have its checksum.*found crc64nvme"):
        await rig.prefetch().run()
    assert name not in rig.held()

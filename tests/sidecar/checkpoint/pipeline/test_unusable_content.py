from __future__ import annotations

import pytest

from podferry.sidecar.checkpoint.pipeline.restore_plan import Restored
from podferry.sidecar.checkpoint.pipeline.unusable_content import exclude


@pytest.mark.parametrize(("abandoned", "found"), [(None, range(0)), ((2, 4), range(2, 5))])
async def test_what_a_run_does_not_build_on_is_known_to_its_uploads_and_to_the_journal(rig, abandoned, found):
    pipeline = rig.pipeline()
    dependencies, registry = pipeline._dependencies, pipeline._registry
    exclude(dependencies, registry, Restored(damaged=("e-1/w",), abandoned=abandoned))
    content, record = dependencies.committer.content, dependencies.journal.checkpoints
    assert (content.damaged, content.abandoned) == ({"e-1/w"}, found)
    assert content.began_ns > 0
    assert (record.damaged, record.abandoned) == (["e-1/w"], abandoned)
    record.began_ns = 7
    exclude(dependencies, registry, Restored.recorded(record, (), ()))
    assert (content.damaged, content.abandoned, content.began_ns) == ({"e-1/w"}, found, 7)

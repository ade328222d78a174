from __future__ import annotations

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.sidecar.config.rank_env import resolve_shard

LAUNCHERS = [
    ({"RANK": "3", "WORLD_SIZE": "8", "PET_NODE_RANK": "1", "PET_NNODES": "2"}, None, "3/8"),
    ({"PET_NODE_RANK": "1", "PET_NNODES": "2"}, None, "1/2"),
    ({"PADDLE_TRAINER_ID": "0", "PADDLE_TRAINERS_NUM": "4"}, None, "0/4"),
    ({"JOB_COMPLETION_INDEX": "2"}, "4", "2/4"),
]


@pytest.mark.parametrize(("environ", "world", "text"), LAUNCHERS)
def test_the_launchers_environment_gives_the_shard(environ, world, text):
    assert resolve_shard("auto", environ, world) == text
    assert resolve_shard("1/3", environ, world) == "1/3"


@pytest.mark.parametrize("environ", [{}, {"RANK": "3"}, {"JOB_COMPLETION_INDEX": "2"}])
def test_auto_without_a_launcher_is_invalid(environ):
    with pytest.raises(InvalidSpec, match="nothing says which shard this is"):
        resolve_shard("auto", environ)

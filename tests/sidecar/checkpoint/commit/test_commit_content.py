from __future__ import annotations

from datetime import UTC, datetime

import pytest

from podferry.contract.destination.commit import (
    DOUBTFUL_FORMAT,
    FORMAT,
    CommittedFile,
    Confidence,
    Doubt,
    DoubtKind,
)
from podferry.sidecar.checkpoint.commit.agent_identity import AgentIdentity
from podferry.sidecar.checkpoint.commit.commit_content import CommitContent

DOUBT = Doubt(DoubtKind.UNPROVEN, "another file may follow")
FILES = (CommittedFile("w", "step-7-0f/w", 1, "0f"),)


@pytest.mark.parametrize(
    ("doubts", "written_as", "confidence"),
    [((), FORMAT, Confidence.SURE), ((DOUBT,), DOUBTFUL_FORMAT, Confidence.DOUBTFUL)],
)
def test_an_earlier_podferry_refuses_doubtful_commits_alone(
    doubts: tuple[Doubt, ...], written_as: int, confidence: Confidence
) -> None:
    created = datetime(2026, 11, 23, tzinfo=UTC)
    commit = CommitContent("step-7", "step-7-0f", FILES, doubts).commit(
        "run", 3, 1, created, AgentIdentity("agent", world=2, run="r", rank=1)
    )
    assert (commit.format, commit.confidence, commit.doubts) == (written_as, confidence, doubts)
    assert (commit.sequence, commit.reserved, commit.step, commit.created) == (3, 1, 7, created)
    assert (commit.checkpoint, commit.name, commit.files) == ("step-7-0f", "step-7", FILES)
    assert (commit.agent_id, commit.world, commit.run, commit.rank) == ("agent", 2, "r", 1)

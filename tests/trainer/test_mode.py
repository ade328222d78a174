"""The word for whose agent serves a `ferry`."""

from __future__ import annotations

import pytest

from podferry.trainer.mode import Mode, describe, mode_of

POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
AGENT = {"PODFERRY_AGENT": "http://127.0.0.1:8471"}


@pytest.mark.parametrize(
    ("environ", "argv0", "mode"),
    [
        (POD | AGENT, "train.py", Mode.INJECTED),
        (POD | AGENT, "/x/ipykernel_launcher.py", Mode.INJECTED),
        (AGENT, "train.py", Mode.RUN),
        (POD, "train.py", Mode.POD),
        (POD, "/x/ipykernel_launcher.py", Mode.NOTEBOOK),
        ({}, "/x/ipykernel_launcher.py", Mode.NOTEBOOK),
        ({}, "train.py", Mode.PROCESS),
        ({"PODFERRY_AGENT": ""}, "train.py", Mode.PROCESS),
    ],
)
def test_whose_agent_it_is(environ: dict[str, str], argv0: str, mode: Mode) -> None:
    assert mode_of(environ, argv0) is mode
    assert mode.own == ("PODFERRY_AGENT" not in environ or not environ["PODFERRY_AGENT"])


def test_each_mode_says_something_else() -> None:
    lines = {describe(mode, "http://127.0.0.1:1", "/dev/shm/x") for mode in Mode}
    assert len(lines) == len(Mode)
    assert describe(Mode.INJECTED, "http://127.0.0.1:8471").startswith("podferry: using the pod's agent")
    assert "which stages in /dev/shm/x" in describe(Mode.PROCESS, "u", "/dev/shm/x")

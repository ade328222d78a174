"""Where `ferry` runs, and whose agent it uses: one behaviour, and a line that says which one it is."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from podferry.contract.http_api import AGENT_VARIABLE
from podferry.sidecar.runtime.log_options import POD_VARIABLE
from podferry.trainer.this_program import is_notebook


class Mode(StrEnum):
    """Whose agent serves a `ferry`.

    `injected`: the pod's sidecar. `run`: the one of `podferry run`. The others are started by `ferry` itself,
    and end with it: in a `pod` that was not injected, in a `notebook`, or in another `process`.
    """

    INJECTED = "injected"
    RUN = "run"
    POD = "pod"
    NOTEBOOK = "notebook"
    PROCESS = "process"

    @property
    def own(self) -> bool:
        """Whether `ferry` starts the agent."""
        return self in {Mode.POD, Mode.NOTEBOOK, Mode.PROCESS}


SAID = {
    Mode.INJECTED: "using the pod's agent: its annotations say what is staged, and where checkpoints go",
    Mode.RUN: "using the agent of `podferry run`",
    Mode.POD: "an agent of this process, in a pod without one: the data is in this container's memory",
    Mode.NOTEBOOK: "an agent of this notebook",
    Mode.PROCESS: "an agent of this process",
}


def mode_of(environ: Mapping[str, str], argv0: str) -> Mode:
    """The mode of a process with this environment and `sys.argv[0]`."""
    in_pod = POD_VARIABLE in environ
    if environ.get(AGENT_VARIABLE):
        return Mode.INJECTED if in_pod else Mode.RUN
    if is_notebook(argv0):
        return Mode.NOTEBOOK
    return Mode.POD if in_pod else Mode.PROCESS


def describe(mode: Mode, url: str, stage: str = "") -> str:
    """The line that `ferry` prints when it starts: the agent, its address, and its own directory."""
    place = f", which stages in {stage}" if stage else ""
    return f"podferry: {SAID[mode]} ({url}{place})"

"""The parts of a location that differ from run to run of one KFP pipeline."""

from __future__ import annotations

import re
from typing import NamedTuple

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
RUN_FOLDER = re.compile(rf".+-\d{{4}}(-\d\d){{5}}-\d{{6}}|{UUID.pattern}", re.IGNORECASE)
"""A run's folder in the pipeline root: pipeline and time under KFP's local runner, a UUID on a cluster."""


class WrittenBy(NamedTuple):
    """The run that writes a file in the pipeline root, and its pipeline; empty where the path has none."""

    pipeline: str
    run: str


def without_runs(location: str) -> str:
    """A location with `*` for the names of runs: a step that is run again writes to another folder."""
    parts = ("*" if RUN_FOLDER.fullmatch(part) else part for part in location.split("/"))
    return UUID.sub("*", "/".join(parts))


def run_of(output_file: str) -> WrittenBy:
    """The run of `<root>/<pipeline>/<run>/<task>/<execution>/<file>`, the path on a cluster.

    KFP's local runner writes to `<root>/<run>/…/<task>/<file>`: that path has no pipeline.
    """
    folders = output_file.split("/")[:-2]
    at = next((at for at in reversed(range(len(folders))) if RUN_FOLDER.fullmatch(folders[at])), None)
    if at is None:
        return WrittenBy("", "")
    on_cluster = UUID.fullmatch(folders[at]) and at > 0
    return WrittenBy(folders[at - 1] if on_cluster else "", folders[at])

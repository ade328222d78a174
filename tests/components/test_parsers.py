"""Inputs that are invalid in a run are refused by their names, all at once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from podferry.components.data.dataset.runner import freeze_dataset
from podferry.components.data.prepare.runner import prepare_dataset
from podferry.components.data.sync.runner import Place, sync_dataset
from podferry.contract.errors import InvalidSpec

STEPS: dict[str, tuple[Callable[[], object], list[str]]] = {
    "dataset": (
        lambda: freeze_dataset("", endpoint="store", fits="64GB", include="[x"),
        ["uri", "endpoint", "fits", "include"],
    ),
    "sync": (
        lambda: sync_dataset(Place("data"), Place("s3:/b/x", region="EU West"), exclude="!x"),
        ["source", "destination", "exclude", "destination_region"],
    ),
    "prepare": (
        lambda: prepare_dataset("data", "", ["true"], {}, to_endpoint="store"),
        ["reference", "to", "to_endpoint"],
    ),
}


@pytest.mark.parametrize("step", STEPS)
def test_every_invalid_input_is_named(step: str) -> None:
    run, names = STEPS[step]
    with pytest.raises(InvalidSpec) as caught:
        run()
    assert [problem.what.partition(":")[0] for problem in caught.value.problems] == names

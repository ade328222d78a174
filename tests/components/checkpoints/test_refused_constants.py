"""Constants of steps that look for checkpoints are refused when the pipeline is compiled, all at once."""

import pytest

from podferry.components import restore_point, verify_checkpoint
from tests.support.refused_constants import URI, assert_refused, fit

REFUSED = {
    "an empty destination to verify": (
        lambda given, data: verify_checkpoint(""),
        ("nothing to verify is given",),
    ),
    "what is verified": (
        lambda given, data: verify_checkpoint("data", any_run=True, secret="S"),
        ("checkpoints: not a URI ('data')", "secret: not a valid Secret"),
    ),
    "a restore point": (
        lambda given, data: restore_point("data", lineage="a/b", endpoint="store"),
        ("checkpoints: not a URI ('data')", "lineage: ", "endpoint: not an endpoint"),
    ),
    "a step of podferry to verify": (
        lambda given, data: verify_checkpoint(given, of=data),
        ("of= needs a training, not a step of podferry (dataset)",),
    ),
    "a restore point to verify": (
        lambda given, data: verify_checkpoint(of=restore_point(given, lineage="a")),
        ("of= needs a step (restore-point)",),
    ),
    "empty texts to restore from": (
        lambda given, data: restore_point("", lineage=""),
        ("give either of= or lineage=", "the destination is missing"),
    ),
    "lineages that are no texts": (
        lambda given, data: verify_checkpoint(URI, lineages=[given, 1, None, "a b/c", data], full=1),
        (
            "lineages[1]: not a text (1)",
            "lineages[2]: not a text (None)",
            "lineages[3]: the lineage is not a plain path segment ('a b/c')",
            "lineages[4]: a task, not an output of it (dataset)",
            "full: neither True nor False (1)",
        ),
    ),
    "a lineage that is no text": (
        lambda given, data: verify_checkpoint(URI, lineages=3),
        ("lineages: not a list of lineages (3)",),
    ),
    "a lineage that is no name": (
        lambda given, data: verify_checkpoint(URI, lineages="a b"),
        ("lineages: the lineage is not a plain path segment ('a b')",),
    ),
    "an output to verify": (
        lambda given, data: verify_checkpoint(of=data.outputs["reference"]),
        ("of= needs a step (dataset.outputs['reference']). Give of= the task",),
    ),
    "a component to verify": (
        lambda given, data: verify_checkpoint(of=fit),
        ("of= needs a step, not a component (fit). Call it",),
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_constants_are_refused_with_every_reason(name: str) -> None:
    assert_refused(*REFUSED[name])

"""What the golden pods do not show: second passes with changes in between, and pods of any shape."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podferry.webhook.injection.inject import InjectionOutcome, inject
from podferry.webhook.pod.json_patch import apply
from podferry.webhook.pod.namespace import Namespace
from podferry.webhook.policy.policy import Policy

Pod = dict[str, Any]
TEAM = Namespace("team")
POLICY = Policy(image="registry.example.com/podferry:1")
REFERENCE = f"s3://datasets/digits#sha256={'a1' * 32}&bytes=104857600&files=1797"


def test_the_sidecar_is_first_and_the_gate_last(annotated_pod: Callable[..., Pod]) -> None:
    pod = annotated_pod()
    pod["spec"]["initContainers"] = [{"name": "one"}, {"name": "two"}]
    made = apply(pod, inject(pod, TEAM, POLICY).patch)
    assert [one["name"] for one in made["spec"]["initContainers"]] == [
        "podferry",
        "one",
        "two",
        "podferry-gate",
    ]


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab/", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text("ab/", max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)
UNKNOWN = st.dictionaries(st.sampled_from(["futureOne", "futureTwo"]), JUNK, max_size=2)
NAMES = st.sampled_from(["one", "two", "three"])


@st.composite
def pods(draw: st.DrawFn) -> Pod:
    def containers(least: int) -> list[Pod]:
        names = draw(st.lists(NAMES, min_size=least, max_size=3, unique=True))
        return [draw(container(name)) for name in names]

    settings = draw(
        st.sampled_from(
            [
                {"dataset": REFERENCE},
                {"checkpoints": "s3://c/x", "checkpoint-size": "10Mi", "secret": "store"},
                {"outputs": "s3://o/x", "output-size": "10Mi", "outputs-secret": "store"},
                {"dataset": "s3://d/unsized"},
                {"datset": "x"},
                {"dataset": REFERENCE, "dataset.a": REFERENCE, "medium.a": "disk", "exclude.a": "*.tmp"},
                {"dataset.b-2": "s3://d/b", "dataset-size.b-2": "70Gi", "medium.b-2": "auto", "secret": "s"},
                {"dataset.b-2": "s3://d/b", "include.b": "*"},
            ]
        )
    )
    main = containers(1)
    settings |= {"container": draw(st.sampled_from([one["name"] for one in main]))}
    metadata = {"name": "p", "annotations": {f"podferry.io/{name}": text for name, text in settings.items()}}
    if draw(st.booleans()):
        metadata["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    spec = {"containers": main, **draw(UNKNOWN)}
    if draw(st.booleans()):
        spec["initContainers"] = containers(0)
    return {"metadata": metadata, "spec": spec, **draw(UNKNOWN)}


@st.composite
def container(draw: st.DrawFn, name: str) -> Pod:
    made: Pod = {"name": name, "image": "i", **draw(UNKNOWN)}
    if draw(st.booleans()):
        made["resources"] = draw(
            st.sampled_from(
                [
                    None,
                    {},
                    {"limits": {"memory": "1Gi"}},
                    {"limits": {"ephemeral-storage": "1Gi"}},
                    {"requests": {"memory": "100M"}},
                ]
            )
        )
    if draw(st.booleans()):
        made["env"] = draw(st.sampled_from([None, [], [{"name": "A", "value": "b"}]]))
    return made


@given(pods())
def test_any_pod(pod: Pod) -> None:
    before = copy.deepcopy(pod)
    decision = inject(pod, TEAM, POLICY)
    assert pod == before
    assert bool(decision.problems) is (
        decision.outcome in {InjectionOutcome.REFUSED, InjectionOutcome.DENIED}
    )
    made = apply(pod, decision.patch)
    again = inject(made, TEAM, POLICY)
    assert (again.outcome, again.patch) == (decision.outcome, ())
    theirs = [one["name"] for one in pod["spec"].get("initContainers", [])]
    found = [one["name"] for one in made["spec"].get("initContainers") or []]
    assert [name for name in found if not name.startswith("podferry")] == theirs
    assert [one["name"] for one in made["spec"]["containers"]] == [
        one["name"] for one in pod["spec"]["containers"]
    ]
    for key in ("futureOne", "futureTwo"):
        assert made.get(key) == pod.get(key)
        assert made["spec"].get(key) == pod["spec"].get(key)

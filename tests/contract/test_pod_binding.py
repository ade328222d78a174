import pytest

from podferry.contract.errors import InvalidSpec
from podferry.contract.pod_binding import PodBinding, made_for


@pytest.mark.parametrize(
    ("metadata", "name"),
    [
        ({"name": "digits"}, "digits"),
        ({"generateName": "digits-"}, "digits-x7k2p"),
        ({"generateName": "digits-", "name": "digits-0"}, "digits-0"),
        ({"generateName": "d" * 62 + "-"}, "d" * 58 + "x7k2p"),
    ],
)
def test_the_pod_that_was_injected(metadata: dict[str, str], name: str) -> None:
    PodBinding(made_for({"metadata": metadata}), name, "v1:1:ab").check()


@pytest.mark.parametrize(
    ("made", "name", "stamp", "reason"),
    [
        ("digits", "digits", "", "without its podferry annotations"),
        ("digits-*", "digits-x7k2p", "", "without its podferry annotations"),
        ("digits", "digits-debug", "v1:1:ab", "made for another pod"),
        ("digits-*", "other", "v1:1:ab", "made for another pod"),
    ],
)
def test_a_copy(made: str, name: str, stamp: str, reason: str) -> None:
    with pytest.raises(InvalidSpec, match=reason) as caught:
        PodBinding(made, name, stamp).check()
    assert f"(pod {name}, made for {made})" in str(caught.value)
    assert "--keep-init-containers=false" in str(caught.value)


def test_a_pod_without_a_name() -> None:
    """Files for `podferry inject` may lack it."""
    assert made_for({}) == "*"
    PodBinding("*", "any", "unsigned").check()

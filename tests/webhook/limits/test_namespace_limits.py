import pytest

from podferry.contract.errors import InvalidSpec
from podferry.webhook.limits.namespace_limits import limits_from

RANGE = {
    "kind": "LimitRange",
    "metadata": {"name": "team"},
    "spec": {"limits": [{"type": "Container", "default": {"cpu": "1"}}]},
}
QUOTA = {"kind": "ResourceQuota", "metadata": {"name": "compute"}, "spec": {"hard": {"limits.cpu": "1"}}}
POD = {
    "spec": {"containers": [{"name": "train"}, {"name": "other", "resources": {"limits": {"cpu": "500m"}}}]}
}


def test_defaults_come_before_quotas() -> None:
    limits = limits_from([{"kind": "List", "items": [RANGE, QUOTA]}])
    made = limits.with_defaults(POD)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"cpu": "1"}
    (problem,) = limits.problems(made)
    assert "limits.cpu is exceeded (0 used and 1.5 for the pod; at most 1)" in str(problem)
    (row,) = limits.quota_rows(made)
    assert row.added == row.hard + row.hard / 2


@pytest.mark.parametrize("documents", [[], [None], [{"kind": "Pod"}], [{"items": 3}]])
def test_other_objects_are_named(documents: list[object]) -> None:
    with pytest.raises(InvalidSpec, match="neither a LimitRange nor a ResourceQuota"):
        limits_from(documents)

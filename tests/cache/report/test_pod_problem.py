import pytest

from podferry.cache.report.pod_problem import pod_problem

BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container"}}
ENDED = {"terminated": {"reason": "Error", "message": "podferry: the bucket is missing.\n"}}
PULL = {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}
NO_NODE = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}


@pytest.mark.parametrize(
    ("status", "text"),
    [
        ({}, ""),
        ({"containerStatuses": [{"state": {"running": {}}, "lastState": ENDED}]}, ""),
        ({"containerStatuses": [{"state": {}}]}, ""),
        (
            {"containerStatuses": [{"state": BACK_OFF, "lastState": ENDED}]},
            "podferry: the bucket is missing.",
        ),
        ({"containerStatuses": [{"state": BACK_OFF}]}, "back-off 20s restarting failed container"),
        ({"containerStatuses": [{"state": PULL}]}, "no such image"),
        (
            {"containerStatuses": [{"state": {"waiting": {"reason": "ContainerCreating"}}}]},
            "ContainerCreating",
        ),
        ({"containerStatuses": [{"state": {"terminated": {"reason": "OOMKilled"}}}]}, "OOMKilled"),
        ({"conditions": [{"status": "True"}, NO_NODE]}, "0/1 nodes are available"),
    ],
)
def test_what_kubernetes_says(status, text):
    assert pod_problem({"status": status}) == text

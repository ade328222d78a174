import pytest

from podferry.cache.report.pod_problem import PodProblem, pod_problem

BACK_OFF = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 20s restarting failed container"}}
ENDED = {"terminated": {"reason": "Error", "message": "podferry: the bucket is missing.\n"}}
LOGGED = {
    "terminated": {
        "reason": "Error",
        "message": '{"event": "serving"}\n{"reason": "it"}\npodferry: it is empty.\npodferry: too.\n',
    }
}
ODD = {"terminated": {"reason": "Error", "message": "\x1b[31mred\n\x00"}}
KILLED = {"terminated": {"reason": "OOMKilled", "exitCode": 137}}
CUT = {
    "terminated": {
        "reason": "Error",
        "exitCode": 137,
        "message": 'uge-0", "event": "reader"}\n{"event": "reader"}\n',
    }
}
REFUSED = {
    "terminated": {
        "reason": "Error",
        "exitCode": 78,
        "finishedAt": "2026-01-01T00:00:00Z",
        "message": "podferry: the bucket is missing.\n",
    }
}
PULL = {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}}
NO_NODE = {
    "type": "PodScheduled",
    "status": "False",
    "reason": "Unschedulable",
    "message": "0/1 nodes are available",
}


def container(state, last=None):
    return {"containerStatuses": [{"state": state, **({"lastState": last} if last else {})}]}


@pytest.mark.parametrize(
    "status",
    [{}, container({"running": {}}), container({}), {"conditions": [{"status": "True"}]}],
)
def test_kubernetes_says_nothing(status):
    assert pod_problem({"status": status}) is None


@pytest.mark.parametrize(
    ("status", "text", "has_failed"),
    [
        (container(BACK_OFF, ENDED), "CrashLoopBackOff: podferry: the bucket is missing.", True),
        (container(BACK_OFF, LOGGED), "CrashLoopBackOff: podferry: it is empty. podferry: too.", True),
        (container(ODD), "Error: \\x1b[31mred \\x00", True),
        (container(BACK_OFF), "CrashLoopBackOff: back-off 20s restarting failed container", True),
        (
            container(BACK_OFF, KILLED),
            "CrashLoopBackOff, OOMKilled: exit code 137 (SIGKILL)",
            True,
        ),
        (container(KILLED), "OOMKilled: exit code 137 (SIGKILL)", True),
        (container(BACK_OFF, CUT), "CrashLoopBackOff: exit code 137 (SIGKILL)", True),
        (
            container({"running": {}}, ENDED),
            "it has ended, and starts again: podferry: the bucket is missing.",
            True,
        ),
        (container({"terminated": {"reason": "Error"}}), "Error", True),
        (container(PULL), "ImagePullBackOff: no such image", True),
        (container({"waiting": {"reason": "ContainerCreating"}}), "ContainerCreating", False),
        ({"conditions": [{"status": "True"}, NO_NODE]}, "Unschedulable: 0/1 nodes are available", True),
        ({"conditions": [{"status": "False", "reason": "SchedulingGated"}]}, "SchedulingGated", False),
    ],
)
def test_what_kubernetes_says(status, text, has_failed):
    assert pod_problem({"status": status}) == PodProblem(text, has_failed)


@pytest.mark.parametrize("state", [REFUSED, BACK_OFF, {"running": {}}])
def test_what_another_try_cannot_help_is_a_refusal(state):
    found = pod_problem({"status": container(state, REFUSED)})
    assert (found.has_failed, found.refused) == (True, "2026-01-01T00:00:00Z")
    assert "the bucket is missing" in found.text


def test_a_traceback_behind_a_log_is_kept():
    trace = 'Traceback (most recent call last):\n  File "x.py", line 1\nValueError: y'
    cut = {"terminated": {"reason": "Error", "exitCode": 1, "message": f'ed"}}\n{{"event": "a"}}\n{trace}\n'}}
    found = pod_problem({"status": container(BACK_OFF, cut)})
    assert found.text == f"CrashLoopBackOff: {' '.join(trace.split())}"
    assert found.refused == ""

import pytest

from podferry.cache.report.event_problem import event_problem

MOUNT = {"reason": "FailedMount", "message": "hostPath type check failed:\n/x is no directory", "count": 4}
QUOTA = {"reason": "FailedCreate", "message": "exceeded quota: q"}
PULLING = {"reason": "Pulling", "message": "Pulling image"}


def at(event, second, field="lastTimestamp"):
    return {**event, field: f"2026-01-01T00:00:{second:02}Z"}


@pytest.mark.parametrize("events", [[], [PULLING], [at(MOUNT, 1), at(PULLING, 2)], [{}]])
def test_nothing_is_wrong_now(events):
    assert event_problem(events) is None


def test_the_newest_event_counts():
    found = event_problem([at(PULLING, 1), at(MOUNT, 3), at(QUOTA, 2)])
    assert found.text == "FailedMount: hostPath type check failed: /x is no directory"
    assert found.has_failed


@pytest.mark.parametrize(
    "newer",
    [
        at(QUOTA, 9, "eventTime"),
        {**at(QUOTA, 1), "series": {"count": 1, "lastObservedTime": "2026-01-01T00:00:09.5Z"}},
        {**QUOTA, "eventTime": None, "metadata": {"creationTimestamp": "2026-01-01T00:00:09Z"}},
    ],
)
def test_each_recorder_has_a_time(newer):
    found = event_problem([at(MOUNT, 8), newer, at(MOUNT, 7)])
    assert (found.text, found.has_failed) == ("FailedCreate: exceeded quota: q", False)


def test_a_series_counts():
    assert event_problem([{**QUOTA, "series": {"count": 2}}]).has_failed

import structlog
from structlog.testing import capture_logs

from podferry.contract.errors import Unavailable
from podferry.webhook.cluster.failure_log import FailureLog


def test_a_failure_is_logged_when_it_begins_or_changes() -> None:
    with capture_logs() as logs:
        failures = FailureLog(structlog.get_logger(), "warning", "not read", config_map="podferry-policy")
        for what in ("down", "down", "denied", "", "denied", "denied"):
            failures.failed(Unavailable.of(what)) if what else failures.succeeded()
    assert [one["problems"] for one in logs] == [("down.",), ("denied.",), ("denied.",)]
    assert logs[0] == {
        "event": "not read",
        "log_level": "warning",
        "problems": ("down.",),
        "config_map": "podferry-policy",
    }

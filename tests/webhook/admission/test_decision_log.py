import time

import pytest
import structlog

from podferry.contract.errors import Problem
from podferry.webhook.admission.decision_log import MAX_PROBLEM_LENGTH, log_decision, without_secrets
from podferry.webhook.admission.review import AdmissionRequest, GroupVersionKind
from podferry.webhook.injection.inject import Decision, InjectionOutcome


@pytest.mark.parametrize(
    ("text", "logged"),
    [
        ("not a URI ('https://me:pa55@store/x')", "not a URI ('https://***@store/x')"),
        ("az://data/x?sv=2024-01-01&sig=aBc%2Bd%3D is no name", "az://data/x?sv=***&sig=*** is no name"),
        (
            "unknown option 'sig' in a URI (sig=aBc%2Bd). Known: engine",
            "unknown option 'sig' in a URI (sig=***). Known: engine",
        ),
        (
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=ab12&engine=obstore",
            "https://b.s3.amazonaws.com/k?X-Amz-Signature=***&engine=***",
        ),
        ("aws_secret_access_key=abc/def+ghi", "aws_secret_access_key=***"),
        ("not a Secret's name ('AKIAIOSFODNN7EXAMPLE')", "not a Secret's name ('***')"),
        ("podferry.io/secret: not a name ('Store')", "podferry.io/secret: not a name ('Store')"),
        (
            "s3://datasets/digits: 3.4 GiB = data volume 3.0 GiB",
            "s3://datasets/digits: 3.4 GiB = data volume 3.0 GiB",
        ),
        ("two\nlines\x1b[2J", "two lines\x1b[2J"),
    ],
)
def test_secrets_are_hidden(text: str, logged: str) -> None:
    assert without_secrets(text) == logged


def test_long_problems_are_cut() -> None:
    assert len(without_secrets("x" * 1_000_000)) == MAX_PROBLEM_LENGTH


@pytest.mark.parametrize("text", ["a-", "sig-", "sigkey", "://a:", "?a", "key=", "?"])
def test_hostile_texts_take_no_time(text: str) -> None:
    """Milliseconds; with a search from every position it was seconds."""
    started = time.process_time()
    for _ in range(20):
        without_secrets(text * 5000)
    assert time.process_time() - started < 1.0


def test_a_decision() -> None:
    pod = {"metadata": {"generateName": "digits-"}}
    request = AdmissionRequest("u", GroupVersionKind("Pod"), namespace="team", object=pod)
    with structlog.testing.capture_logs() as lines:
        problem = Problem("not a URI", "https://me:pa55@store")
        log_decision(request, Decision(InjectionOutcome.DENIED, problems=(problem,)))
    (line,) = lines
    assert (line["name"], line["namespace"], line["outcome"], line["uid"]) == (
        "digits-",
        "team",
        "denied",
        "u",
    )
    assert line["problems"] == ["not a URI (https://***@store)."]

import json

import pytest

from podferry.contract.errors import Problem
from podferry.sidecar.runtime.messages import configure_messages, print_message, print_problems


@pytest.fixture(autouse=True)
def default_messages():
    yield
    configure_messages("text", quiet=False)


def test_messages_go_to_standard_error(capsys):
    print_message("a note")
    print_problems([Problem("one is wrong", "7", "Mend it"), Problem("two is wrong")], "yellow")
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == "a note\npodferry: one is wrong (7). Mend it.\npodferry: two is wrong.\n"


def test_a_quiet_command_prints_only_problems(capsys):
    configure_messages("text", quiet=True)
    print_message("a note")
    print_problems([Problem("one is wrong")])
    assert capsys.readouterr().err == "podferry: one is wrong.\n"


def test_messages_are_json_like_the_log_on_request(capsys):
    configure_messages("json", quiet=False)
    print_message("a note")
    print_problems([Problem("doubtful", "7")], "yellow")
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [(line["event"], line["level"]) for line in lines] == [
        ("a note", "info"),
        ("doubtful (7).", "warning"),
    ]
    assert all(line["timestamp"].endswith("Z") for line in lines)

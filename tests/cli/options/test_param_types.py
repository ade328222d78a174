import click
import pytest

from podferry.cli.options.param_types import SECONDS, ParsedParam
from podferry.cli.options.store_options import parse_location


def test_the_error_of_a_parser_is_a_usage_error():
    with pytest.raises(click.BadParameter, match="the location is empty"):
        ParsedParam("URI", parse_location).convert("", None, None)


def test_a_default_is_a_value_already():
    assert SECONDS.convert(600.0, None, None) == 600.0


@pytest.mark.parametrize("seconds", ["nan", "inf", "-1", "-inf", "1e300", "soon", ""])
@pytest.mark.parametrize(
    "words",
    [("run", "--checkpoints", "./x", "--durable-timeout"), ("leftovers", "upload", "--durable-timeout")],
)
def test_seconds_that_no_timer_takes_are_refused(podferry, words, seconds):
    verb, *options = words
    said = podferry(verb, *options, seconds, "--", "true")
    assert said.code == 2
    assert f"not a number of seconds ({seconds!r}). Write a number" in said.err


@pytest.mark.parametrize(
    "words",
    [
        ("dataset", "ls", "s3://b/x"),
        ("dataset", "get", "s3://b/x", "./y"),
        ("checkpoints", "ls", "s3://b/x"),
    ],
)
def test_an_empty_path_is_not_the_current_directory(podferry, words):
    said = podferry(*words, "--secret-dir", "")
    assert said.code == 2
    assert said.err.count("it names no directory (''). Give a path, or leave it out") == 1

import click
import pytest

from podferry.cli.options.log_options import apply_verbosity
from podferry.sidecar.runtime.messages import SETTINGS, configure_messages


@pytest.fixture(autouse=True)
def default_messages(monkeypatch):
    for name in ("PODFERRY_LOG_LEVEL", "PODFERRY_LOG_FORMAT", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    yield
    configure_messages("text", quiet=False)


@pytest.mark.parametrize(
    ("quiet", "verbose", "level"),
    [(False, 0, "warning"), (True, 0, "error"), (False, 1, "info"), (False, 2, "debug"), (False, 5, "debug")],
)
def test_quiet_and_verbose_choose_the_level(quiet, verbose, level):
    assert apply_verbosity(None, quiet=quiet, verbose=verbose) == (level, "text")
    assert SETTINGS["quiet"] is quiet


def test_the_format_is_the_requested_one():
    assert apply_verbosity("json", quiet=False, verbose=0) == ("warning", "json")
    assert SETTINGS["json"] is True


def test_quiet_and_verbose_contradict_each_other():
    with pytest.raises(click.UsageError, match="give one of them"):
        apply_verbosity(None, quiet=True, verbose=1)

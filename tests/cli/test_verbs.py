import click
import pytest

from podferry.cli import verbs
from podferry.cli.main import FAILED, INTERRUPTED
from podferry.cli.verbs import VERBS
from podferry.contract.errors import InvalidSpec, Problem


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help(podferry, verb, capsys):
    try:
        said = podferry(verb, "--help")
        code, out = said.code, said.out
    except SystemExit as end:  # the small verbs parse with argparse, which ends the process
        code, out = end.code, capsys.readouterr().out
    assert code in {0, None}
    assert "usage:" in out.lower()


def test_an_unknown_verb_is_an_error_message(podferry):
    said = podferry("datasets")
    assert (said.code, "Did you mean 'dataset'?" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (InvalidSpec(Problem("one", "1", "Fix it"), Problem("two", "", "")), FAILED, "podferry: one (1)"),
        (FileNotFoundError(2, "No such file or directory", "/x"), FAILED, "No such file or directory: /x"),
        (click.UsageError("use it so"), 2, "use it so"),
        (click.Abort(), INTERRUPTED, ""),
        (KeyboardInterrupt(), INTERRUPTED, ""),
    ],
)
def test_errors_are_sentences_and_exit_codes(monkeypatch, capsys, error, code, text):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(verbs.podferry, "main", fail)
    assert verbs.main(["any"]) == code
    said = capsys.readouterr().err
    assert text in said
    assert "Traceback" not in said
    assert bool(said) is bool(text)


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (7, 7), ("text", 0)])
def test_the_exit_code_is_what_a_verb_returns(monkeypatch, result, code):
    monkeypatch.setattr(verbs.podferry, "main", lambda *_, **__: result)
    assert verbs.main(["any"]) == code

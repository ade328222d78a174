import subprocess
import sys

import click
import pytest

from podferry.cli import verbs
from podferry.cli.main import main
from podferry.cli.verbs import VERBS
from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.exit_codes import EXIT_FAILED, EXIT_INTERRUPTED


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_every_verb_has_help(podferry, verb):
    said = podferry(verb, "--help")
    assert said.code == 0
    assert "usage:" in said.out.lower()


def test_an_unknown_verb_is_an_error_message(podferry):
    said = podferry("datasets")
    assert (said.code, "Did you mean 'dataset'?" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (
            InvalidSpec(Problem("one", "1", "Fix it"), Problem("two", "", "")),
            EXIT_FAILED,
            "podferry: one (1)",
        ),
        (
            FileNotFoundError(2, "No such file or directory", "/x"),
            EXIT_FAILED,
            "No such file or directory: /x",
        ),
        (click.UsageError("use it so"), 2, "use it so"),
        (click.Abort(), EXIT_INTERRUPTED, ""),
        (KeyboardInterrupt(), EXIT_INTERRUPTED, ""),
    ],
)
def test_errors_are_sentences_and_exit_codes(monkeypatch, capsys, error, code, text):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(verbs.podferry, "main", fail)
    assert main(["explain"]) == code
    said = capsys.readouterr().err
    assert text in said
    assert "Traceback" not in said
    assert bool(said) is bool(text)


@pytest.mark.parametrize(("result", "code"), [(None, 0), (0, 0), (7, 7), ("text", 0)])
def test_the_exit_code_is_what_a_verb_returns(monkeypatch, result, code):
    monkeypatch.setattr(verbs.podferry, "main", lambda *_, **__: result)
    assert verbs.main(["any"]) == code


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("podferry ch", {"checkpoint", "checkpoints"}),
        ("podferry checkpoint ", {"done"}),
        ("podferry wait ", set()),
        ("podferry dataset g", {"get"}),
        ("podferry dataset s", {"sync"}),
        ("podferry checkpoints sh", {"show"}),
    ],
)
def test_completion_offers_what_exists(podferry, monkeypatch, words, completed):
    monkeypatch.setenv("_PODFERRY_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split(" ")) - 1))
    said = podferry()
    assert said.err == ""
    assert {line.partition(",")[2] for line in said.out.split()} == completed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-q", "run", "--", "true"), "-q is an option of run: podferry run -q …"),
        (("--log-format", "json", "run"), "--log-format is an option of run: podferry run --log-format …"),
        (("--quick", "run"), "No such option '--quick'"),
        (("-q", "wait"), "No such option '-q'"),
        (("-q",), "No such option '-q'"),
    ],
)
def test_an_option_before_its_verb_is_named(podferry, words, text):
    said = podferry(*words)
    assert (said.code, text in said.err) == (2, True), said.err


def test_a_missing_extra_is_named_with_its_command():
    code = (
        "import sys; sys.modules['cryptography'] = None; sys.argv = ['podferry', 'webhook', '--policy', 'x'];"
        "from podferry.cli.main import program; program()"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert said.returncode == EXIT_FAILED
    assert said.stderr.startswith("podferry: cryptography is not installed")
    assert said.stderr.endswith("Run: pip install 'podferry[webhook]'.\n")

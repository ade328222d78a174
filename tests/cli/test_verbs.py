import pytest

from podferry.cli.verbs import VERBS


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

from contextlib import nullcontext
from types import SimpleNamespace

import pytest

import podferry.trainer
from podferry.pipelines.scripts.pipeline import train


@pytest.fixture
def run(monkeypatch, tmp_path):
    def run_script(text):
        (tmp_path / "train.py").write_text(text)
        opened = SimpleNamespace(
            datasets={"data": tmp_path, "scripts": tmp_path}, checkpoints=tmp_path, restored=None
        )
        monkeypatch.setattr(podferry.trainer, "ferry", lambda *_: nullcontext(opened))
        return train.python_func("data", "scripts", "checkpoints", "train.py")

    return run_script


def test_the_last_line_is_the_output(run, capsys):
    assert run("print('one'); print('two')") == "two"
    assert capsys.readouterr().out == "one\ntwo\n"
    assert run("") == ""


def test_what_a_failed_script_has_printed_is_in_the_log(run, capsys):
    with pytest.raises(RuntimeError, match=r"train\.py ended with exit code 3"):
        run("import sys; print('epoch 1'); sys.exit(3)")
    assert capsys.readouterr().out == "epoch 1\n"

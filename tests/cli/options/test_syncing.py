import click
import pytest

from podferry.cli.options.store_options import parse_dataset, parse_location
from podferry.cli.options.syncing import run_sync, sync_options


@click.command()
@sync_options
@click.pass_context
def verb(context, **options):
    data, copy = (context.obj / name for name in ("data", "copy"))
    context.exit(run_sync(parse_dataset(str(data)), parse_location(str(copy)), options))


@pytest.fixture
def run(tmp_path, capsys):
    (tmp_path / "data").mkdir()
    for name in ("a.bin", "b.bin", "c.txt"):
        (tmp_path / "data" / name).write_text(name)

    def call(*words):
        code = verb.main(words, obj=tmp_path, standalone_mode=False)
        return code, capsys.readouterr().err

    return call


def test_the_options_select_and_compare(run, tmp_path):
    assert "2 to move" in run("--include", "*.bin", "--dry-run")[1]
    assert not (tmp_path / "copy").exists()
    code, said = run("--include", "*.bin", "--exclude", "b*")
    assert (code, said.startswith("1 file moved")) == (0, True)
    assert {one.name for one in (tmp_path / "copy").glob("*.*")} >= {"a.bin"}


def test_files_that_cannot_be_moved_end_it_with_1(run, tmp_path):
    (tmp_path / "copy/a.bin/x").mkdir(parents=True)
    code, said = run()
    assert code == 1
    assert "a.bin" in said

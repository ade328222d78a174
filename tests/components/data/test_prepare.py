"""`prepare` and `prepared`: once for each content and parameters, whatever happens in the middle."""

# KFP reads annotations as values: no `from __future__ import annotations` here.
import json
import sys
import threading
from pathlib import Path

import pytest
import stamina
from kfp import dsl, local
from kfp.local import config

from podferry.components import prepare, prepared
from podferry.components.data.prepare.component import prepare as component
from podferry.components.data.prepare.runner import prepare_dataset
from podferry.contract.dataset_reference import parse_reference
from podferry.contract.errors import Changed, EmptyDataset, InvalidSpec, PermanentError, Refused, Unavailable
from podferry.storage.local.store import LocalStore
from podferry.storage.store import WriteMode

CODE = """
import os, pathlib
source, target = (pathlib.Path(os.environ[f"PODFERRY_{name}"]) for name in ("DATASET", "TARGET"))
parts = [path.read_bytes() for path in sorted(source.iterdir())]
(target / "all.bin").write_bytes(b"".join(parts))
(target / "parameters.json").write_text(os.environ["PODFERRY_PARAMETERS"])
"""
JOIN = [sys.executable, "-c", CODE]


def folders(destination: str) -> list[str]:
    return sorted(path.name for path in Path(destination[7:]).iterdir() if any(path.rglob("*.bin")))


def convert(uri: str, destination: str, parameters: dict[str, object] | None = None) -> tuple[str, bool]:
    """Join the files of the dataset; the reference, and whether it was needed."""
    with prepared(uri, destination, parameters) as p:
        if p.needed:
            joined = b"".join(path.read_bytes() for path in sorted(p.source.iterdir()))
            (p.target / "joined.bin").write_bytes(joined)
    return p.reference, p.needed


def test_it_runs_once_for_each_content_and_parameters(digits: Path, destination: str) -> None:
    first, needed = convert(str(digits), destination, {"size": 1})
    assert needed
    assert (parse_reference(first).files, parse_reference(first).bytes) == (1, 300)
    assert convert(str(digits), destination, {"size": 1}) == (first, False)
    second, needed = convert(str(digits), destination, {"size": 2})
    assert (needed, second != first) == (True, True)
    (digits / "0.bin").write_bytes(b"other")
    third, needed = convert(str(digits), destination, {"size": 1})
    assert (needed, parse_reference(third).bytes) == (True, 205)
    assert len(folders(destination)) == 3


def test_a_block_that_raises_leaves_nothing_and_the_next_one_converts(digits: Path, destination: str) -> None:
    def fail(target: Path) -> None:
        (target / "half.bin").write_bytes(b"half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), prepared(str(digits), destination) as p:
        fail(p.target)
    assert folders(destination) == []
    assert convert(str(digits), destination)[1]


@pytest.mark.parametrize("call", range(8))
def test_killed_at_any_write_nothing_is_taken_for_complete(
    digits: Path, destination: str, call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store that fails for good at any write leaves what a process does that is killed there."""
    real, calls = LocalStore.write, []

    async def write(self: LocalStore, name: str, body: object, mode: WriteMode = WriteMode.OVERWRITE) -> None:
        calls.append(name)
        if len(calls) > call:
            raise Unavailable.of("killed")
        await real(self, name, body, mode)  # type: ignore[arg-type]

    monkeypatch.setattr(LocalStore, "write", write)
    died = False
    try:
        with stamina.set_testing(True, attempts=1), prepared(str(digits), destination) as p:
            for index in range(3):
                (p.target / f"{index}.bin").write_bytes(b"x" * index)
    except Unavailable:
        died = True
    monkeypatch.undo()
    reference, needed = convert(str(digits), destination)
    assert needed is died
    if died:
        assert parse_reference(reference).files == 1
        assert folders(destination) == [parse_reference(reference).uri.name]


def test_a_result_that_is_gone_or_changed_is_prepared_again(digits: Path, destination: str) -> None:
    first, _ = convert(str(digits), destination)
    joined = Path(destination[7:], parse_reference(first).uri.name, "joined.bin")
    joined.write_bytes(b"changed")
    second, needed = convert(str(digits), destination)
    assert (needed, second != first) == (True, True)
    assert convert(str(digits), destination) == (second, False)
    Path(destination[7:], parse_reference(second).uri.name, "joined.bin").unlink()
    third, needed = convert(str(digits), destination)
    assert (needed, convert(str(digits), destination)) == (True, (third, False))
    assert joined.read_bytes() == b"changed"


def test_two_at_once_return_the_same_reference(digits: Path, destination: str) -> None:
    both, found = threading.Barrier(2), []

    def run() -> None:
        with prepared(str(digits), destination) as p:
            both.wait(60)
            assert p.needed
            (p.target / "x.bin").write_bytes(b"x")
        found.append(p.reference)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 2
    assert found[0] == found[1]
    assert folders(destination) == [parse_reference(found[0]).uri.name]
    with prepared(str(digits), destination) as p:
        assert (p.needed, p.reference) == (False, found[0])


async def test_a_notebook_has_a_running_event_loop(digits: Path, destination: str) -> None:
    reference, needed = convert(str(digits), destination)
    assert needed
    assert convert(str(digits), destination) == (reference, False)


def test_a_result_that_was_first_and_is_gone_again_does_not_win(digits: Path, destination: str) -> None:
    with prepared(str(digits), destination) as p:
        assert p.needed
        first, _ = convert(str(digits), destination)
        Path(destination[7:], parse_reference(first).uri.name, "joined.bin").unlink()
        (p.target / "x.bin").write_bytes(b"x")
    assert convert(str(digits), destination) == (p.reference, False)


def test_misuse_is_an_error_that_says_why(digits: Path, destination: str) -> None:
    with pytest.raises(Refused, match="the conversion wrote no files"), prepared(str(digits), destination):
        pass
    with prepared(str(digits), destination) as p:
        with pytest.raises(PermanentError, match="not uploaded yet"):
            _ = p.reference
        (p.target / "a").write_bytes(b"a")
    with prepared(str(digits), destination) as p, pytest.raises(PermanentError, match="a result already"):
        _ = p.source
    with pytest.raises(EmptyDataset), prepared(f"{digits}x", destination):
        pass
    with pytest.raises(InvalidSpec, match="not JSON"), prepared(str(digits), destination, {"f": object()}):
        pass
    frozen = f"file://{digits}#sha256={'0' * 64}"
    with pytest.raises((Changed, PermanentError), match="since it was frozen"), prepared(frozen, destination):
        pass


def test_a_command_converts_once(digits: Path, destination: str) -> None:
    first = prepare_dataset(str(digits), destination, JOIN, {"size": 3})
    assert (first.files, first.converted) == (2, True)
    held = Path(destination[7:], parse_reference(first.reference).uri.name)
    assert len((held / "all.bin").read_bytes()) == 300
    assert json.loads((held / "parameters.json").read_text()) == {"size": 3}
    again = prepare_dataset(str(digits), destination, JOIN, {"size": 3})
    assert (again.reference, again.converted) == (first.reference, False)
    assert prepare_dataset(str(digits), destination, [*JOIN, "another"], {"size": 3}).converted


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (["sh", "-c", 'echo x > "$PODFERRY_TARGET/x.bin"; exit 3'], "the conversion failed with exit code 3"),
        (["/does/not/exist"], "cannot be started"),
        (["true"], "wrote no files"),
        ([], "there is no command"),
    ],
)
def test_a_command_that_fails_leaves_nothing(
    digits: Path, destination: str, command: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        component.python_func(reference=str(digits), to=destination, command=command)
    assert text in capsys.readouterr().out
    assert folders(destination) == []


@dsl.pipeline(name="prepare-twice")
def prepare_pipeline(uri: str, out: str) -> str:
    task = prepare(uri, JOIN, to=out, parameters={"size": 1}, secret="unused-here", destination_secret="b")
    return task.outputs["reference"]


@pytest.mark.filterwarnings("ignore:.*have no effect in the current local runner:UserWarning")
def test_under_kfps_local_runner(digits: Path, destination: str, tmp_path: Path) -> None:
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "root"))
    try:
        first = prepare_pipeline(uri=str(digits), out=destination).output
        assert prepare_pipeline(uri=str(digits), out=destination).output == first
        (digits / "0.bin").write_bytes(b"x")
        assert prepare_pipeline(uri=str(digits), out=destination).output != first
    finally:
        config.LocalExecutionConfig.instance = None

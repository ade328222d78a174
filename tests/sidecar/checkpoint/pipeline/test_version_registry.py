"""The journal has what the versions say, and each field of the checkpoint record has one owner."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.contract.destination.commit import Commit
from podferry.contract.errors import Refused, Unavailable
from podferry.contract.status import CheckpointStatus
from podferry.sidecar.checkpoint.detect.candidate import Candidate
from podferry.sidecar.checkpoint.pipeline.checkpoint_version import (
    DURABLE,
    TRANSITIONS,
    CheckpointVersion,
    VersionState,
)
from podferry.sidecar.checkpoint.pipeline.version_registry import VersionRegistry
from podferry.sidecar.checkpoint.upload.hardlink_hold import HeldCheckpoint
from podferry.sidecar.runtime.file_identity import FileIdentity
from podferry.sidecar.state.durations import Durations
from podferry.sidecar.state.journal import CheckpointRecord, Journal, PublishedPart

SIDECAR = Path(__file__).parents[4] / "sidecar"
WRITER = "checkpoint/pipeline/version_registry.py"
DETECTOR_RECORD = "checkpoint/pipeline/detector_record.py"
PARTS = ("doubt_ledger", "durable_list", "sequence_place", "version_record")
"""The registry's own modules next to it: nobody else imports them."""
MUTATORS = {"append", "clear", "extend", "insert", "pop", "popitem", "remove", "setdefault", "sort", "update"}
NAMES = ("last", "step-1")


def candidate(number: int, name: str = "last") -> Candidate:
    return Candidate(name, ((f"{name}.pt", FileIdentity(number, 1, number)),))


def hold(of: Candidate, number: int) -> HeldCheckpoint:
    return HeldCheckpoint(of, of.files, Path(f"/pins/{number}/files"), float(number), Path(f"/{number}.json"))


def part(of: Candidate, number: int) -> PublishedPart:
    return PublishedPart(of.files, float(number), float(number), f"folder-{number}", ())


def commit(of: CheckpointVersion, sequence: int, writer: str) -> Commit:
    folder = f"{of.name}-{sequence}"
    return Commit(1, sequence, "run", folder, of.name, None, datetime.now(UTC), (), writer, 1)


class Walk:
    """Random moves of versions by the registry's methods, and what must hold after each."""

    def __init__(self, control: Path, draw: st.DataObject) -> None:
        self.draw, self.journal, self.control = draw, Journal(control), control
        self.status = CheckpointStatus("memory://b", "/seen", "run")
        self.registry = VersionRegistry(self.journal, self.status, [], Durations(), lambda: None)
        self.count = 0
        self.sent: list[CheckpointVersion] = []
        self.newest: dict[str, Candidate] = {}

    def step(self) -> None:
        moves = [self.save, self.take, self.put_back, self.finish_sending, self.commit, self.publish]
        self.draw.draw(st.sampled_from([*moves, self.save, self.take, self.finish_sending, self.give_up]))()
        self.check()

    def any_of(self, *states: VersionState) -> CheckpointVersion | None:
        found = self.registry.in_state(*states)
        return self.draw.draw(st.sampled_from(found)) if found else None

    def save(self) -> None:
        self.count += 1
        found = candidate(self.count, self.draw.draw(st.sampled_from(NAMES)))
        (version,) = self.registry.detect([found], self.registry.unpinned())
        if self.draw.draw(st.booleans()):
            self.registry.hold(version, hold(found, self.count))
            assert self.registry.settled()[found.name] == found

    def take(self) -> None:
        version = self.any_of(VersionState.HELD, VersionState.SET_APART)
        if version is not None:
            self.registry.move(version, VersionState.SENDING)

    def put_back(self) -> None:
        version = self.any_of(VersionState.SENDING, VersionState.SENT)
        if version is not None:
            version.failure = Unavailable.of("no route")
            to = self.draw.draw(st.sampled_from((VersionState.HELD, VersionState.SET_APART)))
            self.registry.move(version, to)
            assert self.registry.failure(version.name) is not None

    def finish_sending(self) -> None:
        version = self.any_of(VersionState.SENDING)
        if version is not None:
            self.registry.move(version, VersionState.SENT)

    def commit(self) -> None:
        version = self.any_of(VersionState.SENT, VersionState.PUBLISHED)
        if version is not None:
            self.registry.commit(version, commit(version, self.count, self.journal.agent.agent_id))
            assert version.name in self.registry.durable()

    def publish(self) -> None:
        version = self.any_of(VersionState.SENT)
        if version is not None:
            self.registry.publish(version, part(version.candidate, version.number))
            assert self.journal.checkpoints.published[version.name] is version.part

    def give_up(self) -> None:
        version = self.any_of(VersionState.SENDING, VersionState.SENT, VersionState.PUBLISHED)
        if version is not None:
            ends = {VersionState.CHANGED, VersionState.SUPERSEDED} & TRANSITIONS[version.state]
            to = self.draw.draw(st.sampled_from(sorted(ends, key=lambda state: state.value)))
            self.registry.move(version, to)
            assert version.failure is None

    def check(self) -> None:
        for states in (DURABLE, {VersionState.PUBLISHED}):
            names = [version.name for version in self.registry.in_state(*states)]
            assert len(set(names)) == len(names), "one version of a name is durable, and one published"
        assert not self.registry.in_state(VersionState.REPLACED)
        sequences = [done.sequence for done in self.status.durable]
        assert sequences == sorted(set(sequences))
        self.registry.prune(NAMES)
        record = Journal(self.control).checkpoints if self.control.joinpath("journal.json").exists() else None
        if record is not None:
            assert msgspec.json.encode(record) == msgspec.json.encode(self.journal.checkpoints)
            assert record.settled == {name: one.files for name, one in self.registry.durable().items()}
            published = self.registry.in_state(VersionState.PUBLISHED)
            assert record.published == {version.name: version.part for version in published}


@settings(deadline=None)
@given(st.data())
def test_the_journal_has_what_the_versions_say_after_any_moves(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    walk = Walk(tmp_path_factory.mktemp("control"), data)
    for _ in range(data.draw(st.integers(1, 40))):
        walk.step()


@pytest.fixture
def registry(tmp_path: Path) -> VersionRegistry:
    status = CheckpointStatus("memory://b", "/seen", "run")
    return VersionRegistry(Journal(tmp_path), status, [], Durations(), lambda: None)


def held_version(registry: VersionRegistry, number: int) -> CheckpointVersion:
    (version,) = registry.detect([candidate(number)], registry.unpinned())
    registry.hold(version, hold(version.candidate, number))
    return version


def send(registry: VersionRegistry, version: CheckpointVersion) -> None:
    registry.move(version, VersionState.SENDING)
    registry.move(version, VersionState.SENT)


def test_a_newer_version_takes_over_the_failure_of_the_one_that_it_replaces(
    registry: VersionRegistry,
) -> None:
    older = held_version(registry, 1)
    older.failure = Unavailable.of("no route")
    newer = held_version(registry, 2)
    assert older.state is VersionState.REPLACED
    assert (older.failure, newer.failure) == (None, registry.failure("last"))
    assert newer.failure is not None
    send(registry, newer)
    registry.commit(newer, commit(newer, 1, "me"))
    assert registry.failure("last") is None


def test_an_older_version_that_is_committed_later_does_not_hide_the_newer(
    registry: VersionRegistry, tmp_path: Path
) -> None:
    older = held_version(registry, 1)
    registry.move(older, VersionState.SENDING)
    newer = held_version(registry, 2)
    registry.move(older, VersionState.HELD)  # overtaken: the pod is ending
    for version, sequence in ((newer, 2), (older, 1)):
        send(registry, version)
        registry.commit(version, commit(version, sequence, "me"))
    assert registry.settled() == registry.durable() == {"last": newer.candidate}
    record = Journal(tmp_path).checkpoints
    assert (record.settled["last"], [done.sequence for done in record.durable]) == (
        newer.candidate.files,
        [1, 2],
    )


def test_a_version_that_changed_is_unpinned_until_a_scan_has_decided(registry: VersionRegistry) -> None:
    version = held_version(registry, 1)
    registry.move(version, VersionState.SENDING)
    registry.move(version, VersionState.CHANGED)
    assert (registry.unpinned(), registry.settled()) == ([version], {})
    registry.detect([], registry.unpinned())
    assert registry.unpinned() == []


def writes(tree: ast.AST) -> Iterator[ast.expr]:
    """Expressions that a module assigns to, deletes, or calls a mutating method of."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Subscript) and not isinstance(node.ctx, ast.Load):
            yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            yield node.func.value


def field_of_checkpoint_record(expression: ast.expr) -> str:
    """The field of the checkpoint record that an expression is, or is an item of; empty for no field."""
    while isinstance(expression, ast.Subscript):
        expression = expression.value
    if not isinstance(expression, ast.Attribute) or expression.attr not in CheckpointRecord.__struct_fields__:
        return ""
    owner = ast.unparse(expression.value)
    return expression.attr if owner.endswith(("record", "journal.checkpoints")) else ""


def test_the_registry_writes_the_journals_checkpoint_record_but_for_what_the_detector_knows() -> None:
    fields = {
        path.relative_to(SIDECAR).as_posix(): {
            field_of_checkpoint_record(written) for written in writes(ast.parse(path.read_text()))
        }
        - {""}
        for path in SIDECAR.rglob("*.py")
    }
    written = {module: names for module, names in fields.items() if names}
    assert written.pop(DETECTOR_RECORD) == {"marks", "began_ns", "linked", "places"}
    assert written.keys() == {WRITER, *(f"checkpoint/pipeline/{part}.py" for part in PARTS)}
    assert set().union(*written.values()).isdisjoint({"marks", "began_ns", "linked", "places"})
    imports = {f"podferry.sidecar.checkpoint.pipeline.{part}" for part in PARTS}
    users = {
        path.relative_to(SIDECAR).as_posix()
        for path in SIDECAR.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module in imports
    } - {f"checkpoint/pipeline/{part}.py" for part in PARTS}
    assert users == {WRITER}


def queued(registry: VersionRegistry, number: int, name: str) -> CheckpointVersion:
    """A version that waits for its upload."""
    found = candidate(number, name)
    (version,) = registry.detect([found], registry.unpinned())
    registry.hold(version, hold(found, number))
    return version


def test_the_failure_of_a_checkpoint_is_that_of_its_newest_version(tmp_path: Path) -> None:
    status = CheckpointStatus("memory://b", "/seen", "run")
    registry = VersionRegistry(Journal(tmp_path), status, [], Durations(), lambda: None)
    older = queued(registry, 1, "last")
    registry.move(older, VersionState.SENDING)
    newer = queued(registry, 2, "last")
    older.failure = Unavailable.of("no route")
    registry.move(older, VersionState.HELD)
    assert registry.failure("last") is older.failure
    newer.failure = Refused.of("not readable")
    assert registry.failure("last") is newer.failure


def test_a_restarted_worker_finds_parts_in_the_order_in_which_they_were_published(tmp_path: Path) -> None:
    status = CheckpointStatus("memory://b", "/seen", "run")
    registry = VersionRegistry(Journal(tmp_path), status, [], Durations(), lambda: None)

    def publish(version: CheckpointVersion) -> None:
        registry.move(version, VersionState.SENDING)
        registry.move(version, VersionState.SENT)
        registry.publish(version, part(version.candidate, version.number))

    older = queued(registry, 1, "step-5")
    publish(queued(registry, 2, "step-3"))
    publish(older)
    publish(queued(registry, 3, "step-3"))
    restarted = VersionRegistry(Journal(tmp_path), status, [], Durations(), lambda: None)
    found = [(version.name, version.part.folder) for version in restarted.in_state(VersionState.PUBLISHED)]
    assert found == [("step-3", "folder-3"), ("step-5", "folder-1")]


def test_thousands_of_commits_leave_a_small_journal_that_knows_what_is_local(tmp_path: Path) -> None:
    """A month of training; the trainer keeps the first checkpoint and the newest three."""
    status, journal = CheckpointStatus("memory://b", "/seen", "run"), Journal(tmp_path)
    registry = VersionRegistry(journal, status, [], Durations(), lambda: None)
    sizes, local = [], [""]
    for number in range(1, 2001):
        version = queued(registry, number, f"step-{number}")
        send(registry, version)
        registry.commit(version, commit(version, number, journal.agent.agent_id))
        local = ["step-1", *(f"step-{one}" for one in range(max(number - 2, 2), number + 1))]
        registry.prune(local)
        sizes.append((tmp_path / "journal.json").stat().st_size)
    assert max(sizes) <= sizes[99] * 1.2, "it does not grow"
    assert (len(status.durable), status.durable_count) == (50, 2000)
    assert [one.name for one in registry.commits()][:2] == ["step-1", "step-1951"]

    restarted_status = CheckpointStatus("memory://b", "/seen", "run")
    restarted = VersionRegistry(Journal(tmp_path), restarted_status, [], Durations(), lambda: None)
    assert (restarted_status.durable, restarted_status.durable_count) == (status.durable, 2000)
    assert restarted.settled().keys() >= {*local}
    assert {one.state for one in restarted.in_state(*DURABLE)} == {VersionState.COMMITTED}
    assert restarted.commits() == registry.commits()

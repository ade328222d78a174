import asyncio
import gc
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.destination.output_record import OutputRecord, decode_record
from podferry.contract.errors import AccessDenied, InvalidSpec, Problem, Refused, Unavailable
from podferry.contract.http_api import Durability
from podferry.contract.spec import FerrySpec, OutputSpec
from podferry.contract.status import DurableCheckpoint, Status
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.control.agent_api import merge
from podferry.sidecar.launch.local_agent import local_directories
from podferry.sidecar.launch.local_spec import local_spec
from podferry.sidecar.outputs import output_job
from podferry.sidecar.outputs import scan as scan_module
from podferry.sidecar.outputs.output_job import OutputJob
from podferry.sidecar.state.agent_state import AgentState
from podferry.storage.memory.store import CONTENTS, Content, Fault

LONG = 30.0
RECORD = ".podferry/outputs.json"
DURABLE = Durability(durable=True)


class Site:
    """A directory of outputs, its destination, and jobs for them."""

    def __init__(self, base: Path) -> None:
        self.base, self.root, self.bucket = base, base / "outputs", f"outputs-{base.name}"
        self.root.mkdir()
        self.content = CONTENTS.setdefault(self.bucket, Content())
        self.state = AgentState(Status())

    def job(self, every: int | None = None, world: int = 1, rank: int | None = None) -> OutputJob:
        """One life of a worker."""
        spec = OutputSpec(f"memory://{self.bucket}/runs", str(self.root), every=every)
        ferry_spec = FerrySpec(outputs=spec, lineage="team.job.digits", world=world, rank=rank)
        config = AgentConfig(
            ferry_spec, Directories(self.base / "control", outputs=self.root), run_id="run-1"
        )
        return OutputJob(spec, self.root, config, self.state, "team.job.digits", "w" * 32)

    def write(self, name: str, data: bytes, *, age: float = 3600.0) -> Path:
        """Write a file as a trainer, last changed `age` seconds ago."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (time.time() - age,) * 2)
        return path

    def uploaded(self) -> dict[str, bytes]:
        """The destination's files, without the record."""
        found = {key.removeprefix("runs/"): data for key, data in self.content.objects.items()}
        return {name: data for name, data in found.items() if not name.startswith(".podferry/")}

    def record(self, name: str = RECORD) -> OutputRecord:
        return decode_record(self.content.objects[f"runs/{name}"], name)

    def writes(self) -> list[str]:
        """Names of the files that were sent, in order."""
        return [name for call, name in self.content.calls if call == "write" and not name.startswith(".podf")]


@pytest.fixture
def site(tmp_path, quick_retries, monkeypatch):
    monkeypatch.setattr(output_job, "ROUND_PAUSE_SECONDS", 0.001)
    made = Site(tmp_path)
    yield made
    del CONTENTS[made.bucket]


def end() -> float:
    return time.monotonic() + LONG


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():  # noqa: ASYNC110 - of files and threads, which set no event
            await asyncio.sleep(0.001)


async def test_every_file_is_uploaded_under_its_own_name(site):
    contents = {"a.log": b"1", "runs/x/y.json": b"{}", "empty": b"", "large": os.urandom(9 << 20)}
    for name, data in contents.items():
        site.write(name, data)
    job = site.job()
    await job.plan()
    assert await job.finish(end(), exit_code=0) == DURABLE
    assert site.uploaded() == contents
    status = site.state.status.outputs
    assert (status.files, status.bytes, status.problems) == (4, sum(map(len, contents.values())), [])
    assert status.uploaded_at is not None
    assert not job.incomplete
    await job.close()


async def test_the_record_names_the_agent_and_the_exit_code(site):
    job = site.job()
    site.write("a", b"12345")
    await job.plan()
    began = site.record()
    assert (began.lineage, began.writer, began.run) == ("team.job.digits", "w" * 32, "run-1")
    assert (began.ended_at, began.exit_code, began.files) == (None, None, 0)
    await job.finish(end(), exit_code=3)
    ended = site.record()
    assert (ended.files, ended.bytes, ended.exit_code, ended.problems) == (1, 5, 3, ())
    assert ended.ended_at is not None


async def test_a_known_exit_code_is_kept(site):
    job = site.job()
    assert await job.flush(LONG, exit_code=137) == DURABLE
    assert await job.finish(end()) == DURABLE
    assert site.record().exit_code == 137


async def test_each_pod_of_a_gang_writes_its_own_record(site):
    for rank in (0, 1):
        await site.job(world=2, rank=rank).finish(end())
    assert [site.record(f".podferry/outputs-{rank}.json").rank for rank in (0, 1)] == [0, 1]


async def test_only_what_changed_is_sent_again_and_nothing_is_deleted(site):
    site.write("kept", b"1")
    changed, removed = site.write("changed", b"2"), site.write("removed", b"3")
    job = site.job()
    await job.flush(LONG)
    first = len(site.writes())
    assert first == 3
    changed.write_bytes(b"22")
    removed.unlink()
    await job.flush(LONG)
    assert site.writes()[first:] == ["changed"]
    assert site.uploaded() == {"kept": b"1", "changed": b"22", "removed": b"3"}
    assert site.state.status.outputs.files == 2


async def test_a_file_that_may_have_changed_within_a_tick_is_sent_once_more(site):
    site.write("fresh", b"1", age=-60)
    job = site.job()
    await job.flush(LONG)
    await job.flush(LONG)
    assert site.writes() == ["fresh", "fresh"]


async def test_the_last_version_is_sent_once(site):
    site.write("fresh", b"1").write_bytes(b"2")
    job = site.job()
    await job.flush(LONG, exit_code=0)
    await job.finish(end())
    assert site.writes() == ["fresh"]
    assert site.uploaded() == {"fresh": b"2"}


async def test_intervals_upload_while_training_runs(site):
    job = site.job(every=0.001)  # type: ignore[arg-type]
    running = asyncio.create_task(job.run())
    log = site.write("log", b"1")
    await until(lambda: site.uploaded() == {"log": b"1"})
    with log.open("ab") as file:
        file.write(b"2")
    await until(lambda: site.uploaded() == {"log": b"12"})
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_without_an_interval_nothing_is_sent_before_the_end(site):
    site.write("log", b"1")
    await site.job().run()
    assert site.writes() == []


async def test_uploads_continue_after_a_failed_interval(site):
    job = site.job(every=0.001)  # type: ignore[arg-type]
    site.write("log", b"1")
    site.content.faults.append(Fault("write", "log", error=AccessDenied.of("the store refuses"), times=2))
    running = asyncio.create_task(job.run())
    await until(lambda: site.uploaded() == {"log": b"1"})
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_plan_finds_problems_before_training(site):
    site.content.faults.append(Fault("write", error=AccessDenied.of("the store refuses")))
    with pytest.raises(AccessDenied):
        await site.job().plan()
    site.root.rmdir()
    with pytest.raises(Refused, match="does not exist"):
        await site.job().plan()


async def test_a_temporary_failure_is_retried(site):
    site.write("log", b"1")
    site.content.faults.append(Fault("write", "log", error=Unavailable.of("503"), times=2))
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"log": b"1"}


async def test_finish_waits_for_an_unavailable_store(site):
    for name in "ab":
        site.write(name, name.encode())
    site.content.faults.append(Fault("write", "[ab]", error=Unavailable.of("503"), times=20))
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"a": b"a", "b": b"b"}


async def test_a_permanent_failure_is_reported_and_other_files_are_sent(site):
    for name in ("a", "b", "c"):
        site.write(name, name.encode())
    site.content.faults.append(Fault("write", "b", error=AccessDenied.of("the store refuses"), times=99))
    job = site.job()
    found = await job.finish(end(), exit_code=1)
    problem = Problem("the store refuses", "'b'")
    assert found == Durability(False, ("outputs (1 file)",), (problem,), hopeless=True)
    assert site.uploaded() == {"a": b"a", "c": b"c"}
    assert (site.record().problems, site.record().exit_code, site.record().files) == ((problem,), 1, 2)
    assert site.state.status.outputs.problems == [problem]
    assert site.state.status.outputs.uploaded_at is None
    assert job.incomplete


async def test_a_failure_keeps_no_bytes(site):
    """Thousands of files may fail: their bytes must be freed without a run of the garbage collector."""
    site.write("a", b"1")
    site.content.faults.append(Fault("write", "a", error=AccessDenied.of("the store refuses"), times=99))
    job = site.job()
    await job.flush(LONG)
    kept = job._sync.last.failed["a"]
    assert not any(isinstance(one, BaseException) for one in gc.get_referents(*gc.get_referents(kept), kept))


async def test_a_write_whose_answer_is_lost_is_sent_again(site):
    site.write("a", b"1")
    site.content.faults.append(Fault("write", "a", error=Unavailable.of("reset"), after=True))
    assert await site.job().finish(end()) == DURABLE
    assert site.writes() == ["a", "a"]


async def test_files_that_vanish_are_no_failure(site):
    gate = asyncio.Event()
    names = [f"{number}" for number in range(20)]
    for name in names:
        site.write(name, b"1")
    site.content.faults.append(Fault("write", "[0-9]*", wait=gate, times=4))
    task = asyncio.create_task(site.job().finish(end()))
    await until(lambda: len(site.writes()) == 4)
    for name in set(names) - set(site.writes()):
        (site.root / name).unlink()
    gate.set()
    assert await task == DURABLE
    assert len(site.uploaded()) == site.state.status.outputs.files == 4


async def test_a_directory_that_vanishes_is_empty(site):
    site.root.rmdir()
    assert await site.job().finish(end()) == DURABLE


async def test_a_growing_log_is_sent_as_a_prefix_and_then_completely(site, monkeypatch):
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4)
    log = site.write("log", b"line 1\nline 2\n")
    gate = asyncio.Event()
    site.content.faults.append(Fault("write", "log", wait=gate))
    job = site.job()
    task = asyncio.create_task(job.flush(LONG))
    await until(site.writes)
    with log.open("ab") as file:
        file.write(b"line 3\n")
    gate.set()
    assert await task == DURABLE
    # The body is read when the store takes it.
    assert site.uploaded()["log"].startswith(b"line 1\nline 2\n")
    await job.finish(end())
    assert site.uploaded()["log"] == b"line 1\nline 2\nline 3\n"


async def test_a_file_that_is_replaced_repeatedly_is_sent_once_it_is_stable(site, monkeypatch):
    """Only the fourth read finds the scanned file."""
    path = site.write("best.json", b"0")
    opened, real = [], scan_module.os.open

    def opening(name, flags):
        opened.append(name)
        if len(opened) < 4:
            other = path.with_name("other")
            other.write_bytes(str(len(opened)).encode())
            other.replace(path)
        return real(name, flags)

    monkeypatch.setattr(scan_module.os, "open", opening)
    assert await site.job().finish(end()) == DURABLE
    assert len(opened) == 4
    assert site.uploaded() == {"best.json": b"3"}


async def test_files_not_uploaded_at_the_deadline_are_named(site):
    for name, data in {"small": b"1", "large": b"2" * 9, "later": b"3" * 99}.items():
        site.write(name, data)
    site.content.faults += [Fault("write", name, wait=asyncio.Event()) for name in ("large", "later")]
    job = site.job()
    await job.flush(0.0)
    await until(site.uploaded)
    found = await job.finish(time.monotonic() + 2.0, exit_code=143)
    assert site.uploaded() == {"small": b"1"}
    assert (found.durable, found.hopeless, found.pending) == (False, False, ("outputs (2 files)",))
    assert [problem.measured for problem in found.problems] == ["2 of 3 files: 'large', 'later'"]
    assert job.incomplete
    record = site.record()
    assert (record.files, record.exit_code, record.problems) == (1, 143, found.problems)
    assert record.ended_at is not None
    # A file that was reported as missing is not uploaded later.
    assert asyncio.all_tasks() == {asyncio.current_task()}
    await job.close()


async def test_files_written_while_the_pod_ends_are_uploaded(site):
    """The pod's end has started an upload; the trainer continues to write until it exits."""
    site.write("a", b"1")
    gate = asyncio.Event()
    site.content.faults.append(Fault("write", "a", wait=gate))
    job = site.job()
    assert not (await job.flush(0.0)).durable
    await until(site.writes)
    site.write("last-words", b"2")
    asyncio.get_running_loop().call_later(0.05, gate.set)
    assert await job.finish(end()) == DURABLE
    assert site.uploaded() == {"a": b"1", "last-words": b"2"}
    await job.close()


async def test_a_past_deadline_is_reported(site):
    site.write("a", b"1")
    job = site.job()
    found = await job.finish(time.monotonic() - 1)
    assert [problem.what for problem in found.problems] == ["the last upload of the outputs has not ended"]
    assert job.incomplete
    await job.close()


async def test_a_second_flush_continues_the_same_upload(site):
    site.write("a", b"1")
    gate = asyncio.Event()
    site.content.faults.append(Fault("write", "a", wait=gate))
    job = site.job()
    assert not (await job.flush(0.01)).durable
    assert not (await job.flush(0.01)).hopeless
    gate.set()
    assert await job.flush(LONG) == DURABLE
    assert site.writes() == ["a"]
    assert site.content.calls.count(("write", RECORD)) == 1


async def test_files_are_uploaded_even_if_the_record_cannot_be_written(site):
    site.write("a", b"1")
    site.content.faults.append(Fault("write", ".podferry/*", error=AccessDenied.of("no"), times=9))
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"a": b"1"}


async def test_ignored_files_are_reported_but_are_no_failure(site):
    site.write("real", b"1")
    (site.root / "latest").symlink_to("real")
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"real": b"1"}
    assert [problem.measured for problem in site.state.status.outputs.problems] == ["'latest'"]
    assert site.record().problems == tuple(site.state.status.outputs.problems)


async def test_small_files_are_sent_first(site, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.outputs.sync.CONCURRENT_FILES", 1)
    for size in (5, 1, 3):
        site.write(f"{size}", b"x" * size)
    await site.job().finish(end())
    assert site.writes() == ["1", "3", "5"]


async def test_large_files_are_sent_one_at_a_time(site, monkeypatch):
    monkeypatch.setattr("podferry.sidecar.outputs.sync.CHUNK_BYTES", 1)
    gate = asyncio.Event()
    for name in ("large-1", "large-2", "s"):
        site.write(name, name.encode() if name != "s" else b"s")
    site.content.faults.append(Fault("write", "large-*", wait=gate, times=2))
    task = asyncio.create_task(site.job().finish(end()))
    await until(lambda: len(site.writes()) == 2)
    for _ in range(10):
        await asyncio.sleep(0)
    assert sorted(site.writes()) == ["large-1", "s"]
    gate.set()
    assert await task == DURABLE


def test_a_config_without_a_directory_is_refused(tmp_path):
    spec = FerrySpec(outputs=OutputSpec("memory://x/y"), lineage="x")
    with pytest.raises(InvalidSpec, match="--output-dir is missing"):
        AgentConfig(spec, Directories(tmp_path))
    with pytest.raises(InvalidSpec, match="lineage is missing"):
        AgentConfig(FerrySpec(outputs=spec.outputs), Directories(tmp_path, outputs=tmp_path))


def test_merged_answers():
    last = DurableCheckpoint("epoch-1", 1, 1, 9, 1.0, 2.0)
    waiting = Durability(False, ("epoch-2",), (Problem("x"),), last=last)
    hopeless = Durability(False, ("outputs (1 file)",), (Problem("y"),), hopeless=True)
    assert merge([Durability(True, last=last), DURABLE]) == Durability(True, last=last)
    assert merge([DURABLE, hopeless]) == hopeless
    both = Durability(False, ("epoch-2", "outputs (1 file)"), (Problem("x"), Problem("y")), last=last)
    assert merge([waiting, hopeless]) == both
    assert merge([]) == DURABLE


def test_a_local_run_has_outputs_in_memory_or_in_the_given_directory(tmp_path):
    settings_ = {"outputs": str(tmp_path / "out"), "outputs_every": "60s"}
    spec = local_spec(settings_, ["python", "t.py"], tmp_path)
    assert (spec.outputs.uri, spec.outputs.every) == (f"file://{tmp_path}/out", 60)
    assert spec.lineage.startswith("local.t.")
    directories = local_directories(spec, tmp_path)
    assert directories.outputs == tmp_path / "outputs"
    assert directories.outputs.is_dir()
    own = local_spec({"outputs": "s3://b/o", "output_path": str(tmp_path / "runs")}, ["t.py"], tmp_path)
    assert local_directories(own, tmp_path).outputs == tmp_path / "runs"


def test_summary(site):
    place = f"from {site.root} to memory://{site.bucket}/runs"
    assert site.job().summary() == f"outputs: {place}, at the end"
    assert site.job(every=60).summary() == f"outputs: {place}, every 60 s and at the end"


NAMES = st.sampled_from(["a", "b", "d/a", "d/b"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.binary(max_size=9)),
        st.tuples(st.just("append"), NAMES, st.binary(min_size=1, max_size=9)),
        st.tuples(st.just("remove"), NAMES),
        st.tuples(st.just("round")),
        st.tuples(st.just("fault"), st.integers(1, 4), st.booleans()),
        st.tuples(st.just("restart")),
    ),
    max_size=12,
)


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_the_newest_version_of_each_file_is_uploaded_in_any_schedule(tmp_path_factory, quick_retries, steps):
    """Writes, removals, rounds, failures and restarts in any order."""
    site = Site(tmp_path_factory.mktemp("any"))

    async def play() -> None:
        job = site.job()
        for step in steps:
            match step:
                case ("write", name, data):
                    site.write(name, data, age=0)
                case ("append", name, data):
                    site.write(name, b"", age=0) if not (site.root / name).exists() else None
                    with (site.root / name).open("ab") as file:
                        file.write(data)
                case ("remove", name):
                    (site.root / name).unlink(missing_ok=True)
                case ("round",):
                    await job.flush(0.0)
                    await job.flush(LONG)
                case ("fault", times, after):
                    fault = Fault("write", error=Unavailable.of("503"), times=times, after=after)
                    site.content.faults.append(fault)
                case ("restart",):
                    await job.close()
                    job = site.job()
        left = {
            str(path.relative_to(site.root)): path.read_bytes()
            for path in site.root.rglob("*")
            if path.is_file()
        }
        assert await job.finish(end(), exit_code=0) == DURABLE
        assert left.items() <= site.uploaded().items()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(output_job, "ROUND_PAUSE_SECONDS", 0.0)
        patch.setattr(output_job, "TICK_SECONDS", 0.0)
        asyncio.run(play())
    del CONTENTS[site.bucket]

import asyncio
import mmap
import os
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podferry.contract.errors import AccessDenied, InvalidSpec, Problem, Refused, Unavailable
from podferry.contract.http_api import Durability
from podferry.contract.spec import FerrySpec, OutputSpec
from podferry.sidecar.config.agent_config import AgentConfig
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.outputs import output_job
from podferry.sidecar.outputs import scan as scan_module
from podferry.storage.memory.store import CONTENTS, Fault
from tests.support.output_site import DURABLE, RECORD, Site, end, until
from tests.support.patience import PATIENCE


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
    assert await job.flush(PATIENCE, exit_code=137) == DURABLE
    assert await job.finish(end()) == DURABLE
    assert site.record().exit_code == 137


async def test_each_pod_of_a_gang_writes_its_own_record(site):
    for rank in (0, 1):
        await site.job(world=2, rank=rank).finish(end())
    assert [site.record(f".podferry/outputs-{rank}.json").rank for rank in (0, 1)] == [0, 1]


async def test_the_last_version_is_sent_once(site):
    site.write("fresh", b"1").write_bytes(b"2")
    job = site.job()
    await job.flush(PATIENCE, exit_code=0)
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


async def test_writes_through_a_mapping_are_uploaded_at_the_end(memory_site):
    path = memory_site.write("predictions.npy", bytes(8192))
    job = memory_site.job()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        mapped[:] = bytes(8192)  # the first store to each page does change the time
        await job.flush(PATIENCE)  # a pod's end while the trainer still writes
        assert memory_site.uploaded() == {"predictions.npy": bytes(8192)}
        mapped[:] = b"1" * 8192
        mapped.flush()
    assert await job.finish(end(), exit_code=0) == DURABLE
    assert memory_site.uploaded() == {"predictions.npy": b"1" * 8192}
    assert memory_site.record().files == 1


async def test_what_was_sent_after_the_trainer_ended_is_not_read_again(site, monkeypatch):
    site.write("early", b"1")
    job, looked = site.job(), []
    real = job._sync.reread

    async def looking(since, until):
        found = await real(since, until)
        looked.append(sorted(found.same))
        return found

    monkeypatch.setattr(job._sync, "reread", looking)
    await job.flush(PATIENCE)
    site.write("late", b"2")
    await job.flush(PATIENCE, exit_code=0)
    await job.finish(end())
    assert looked == [[], ["early"], []]


async def test_what_there_is_no_time_to_read_again_counts_as_sent(site, monkeypatch, capsys):
    monkeypatch.setattr(output_job, "REREAD_SECONDS", -1.0)
    site.write("early", b"1")
    job = site.job()
    await job.flush(PATIENCE)
    assert await job.finish(end()) == DURABLE
    assert "outputs not read again: time is up" in capsys.readouterr().out
    assert site.record().files == 1


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


async def test_finish_waits_for_an_unavailable_store(site):
    for name in "ab":
        site.write(name, name.encode())
    site.content.faults.append(Fault("write", "[ab]", error=Unavailable.of("503"), times=20))
    assert await site.job().finish(end()) == DURABLE
    assert site.uploaded() == {"a": b"a", "b": b"b"}


async def test_a_failure_is_reported_although_the_next_interval_has_begun(site):
    site.write("a", b"1")
    refused = AccessDenied.of("the store refuses")
    recorded, sent = asyncio.Event(), asyncio.Event()
    site.content.faults += [
        Fault("write", "a", error=refused),
        Fault("write", RECORD, wait=recorded),
        Fault("write", "a", error=refused, wait=sent),
    ]
    job = site.job(every=0.001)  # type: ignore[arg-type]
    flushing = asyncio.create_task(job.flush(PATIENCE))
    await until(lambda: ("write", RECORD) in site.content.calls)
    running = asyncio.create_task(job.run())
    await until(lambda: site.writes() == ["a", "a"])
    recorded.set()
    answer = await flushing
    assert (answer.durable, answer.hopeless) == (False, True)
    assert answer.problems[0].what == "the store refuses"
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


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


async def test_a_growing_log_is_sent_as_a_prefix_and_then_completely(site, monkeypatch):
    monkeypatch.setattr(scan_module, "CHUNK_BYTES", 4)
    log = site.write("log", b"line 1\nline 2\n")
    gate = asyncio.Event()
    site.content.faults.append(Fault("write", "log", wait=gate))
    job = site.job()
    task = asyncio.create_task(job.flush(PATIENCE))
    await until(site.writes)
    with log.open("ab") as file:
        file.write(b"line 3\n")
    gate.set()
    assert await task == DURABLE
    # The body is read when the store takes it.
    assert site.uploaded()["log"].startswith(b"line 1\nline 2\n")
    await job.finish(end())
    assert site.uploaded()["log"] == b"line 1\nline 2\nline 3\n"


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


async def test_the_reason_of_a_failed_round_is_kept_while_the_next_one_runs(site):
    site.write("a", b"1")
    job, gate = site.job(), asyncio.Event()
    full = Unavailable.of("no space left", "0 B free", "Free space there")
    attempts = job._sync._attempts
    site.content.faults += [Fault("write", "a", error=full, times=attempts), Fault("write", "a", wait=gate)]
    await job.flush(0.0)
    await until(lambda: len(site.writes()) > attempts)
    found = await job.flush(0.0)
    ends = "the last upload of the outputs has not ended"
    assert [problem.what for problem in found.problems] == ["no space left", ends]
    gate.set()
    assert await job.finish(end()) == DURABLE
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
    assert await job.flush(PATIENCE) == DURABLE
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


def test_a_config_without_a_directory_is_refused(tmp_path):
    spec = FerrySpec(outputs=OutputSpec("memory://x/y"), lineage="x")
    with pytest.raises(InvalidSpec, match="--output-dir is missing"):
        AgentConfig(spec, Directories(tmp_path))
    with pytest.raises(InvalidSpec, match="lineage is missing"):
        AgentConfig(FerrySpec(outputs=spec.outputs), Directories(tmp_path, outputs=tmp_path))


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
                    await job.flush(PATIENCE)
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

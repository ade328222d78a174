"""A holder whose source changes: every reader sees one version, and only what differs is fetched."""

import asyncio
import errno
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.cache.holder import next_version, refresher
from podferry.cache.holder.refresher import keep_current, refresh
from podferry.cache.holder.served_versions import UNREAD_SECONDS
from podferry.contract.errors import AccessDenied, Changed, NotFound, Unavailable
from podferry.contract.tmpfs_cost import PAGE_BYTES
from podferry.storage.memory.store import CONTENTS, Content, Fault
from tests.support.dataset_site import held
from tests.support.holder_site import holder_stage
from tests.support.output_site import until

FILES = {"a/1": b"one", "a/2": b"two", "b": b""}


class Clock:
    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
async def stage(content, tmp_path, clock):
    made = holder_stage(content.uri, tmp_path / "held", now=clock)
    await made.fill()
    content.calls.clear()
    yield made
    await made.close()


def reads(content):
    return [name for call, name in content.calls if call == "read"]


def file_of(stage, digest, name):
    found = stage.file(digest, name)
    with found.open(0, found.entry.size) as file:
        return file.read()


async def test_only_what_differs_is_fetched(stage, content):
    content.objects |= {"d/a/2": b"TWO", "d/c": b"new"}
    del content.objects["d/b"]
    await refresh(stage)
    assert sorted(reads(content)) == ["a/2", "c"]
    assert held(stage.root) == {"a/1": b"one", "a/2": b"TWO", "c": b"new"}
    assert stage.status.bytes_done == stage.status.bytes == 9
    assert stage.status.path == str(stage.root)


async def test_a_source_that_has_not_changed_costs_a_list(stage, content):
    before = stage.complete
    await refresh(stage)
    assert (reads(content), stage.complete) == ([], before)


async def test_readers_of_a_version_get_its_files_until_they_are_gone(stage, content, clock):
    first = stage.complete.digest
    content.objects["d/a/2"] = b"TWO"
    await refresh(stage)
    second = stage.complete.digest
    for _ in range(3):
        clock.seconds += UNREAD_SECONDS - 1
        assert file_of(stage, first, "a/2") == b"two"
        assert file_of(stage, second, "a/2") == b"TWO"
        assert not await stage.versions.remove_unread()
    clock.seconds += UNREAD_SECONDS
    assert await stage.versions.remove_unread()
    assert stage.file(first, "a/2") is None
    assert file_of(stage, second, "a/1") == b"one"


async def test_a_source_that_fails_leaves_what_is_served(stage, content):
    content.objects["d/a/2"] = b"TWO"
    for fault in ("entries", "read"):
        content.faults.append(Fault(fault, error=AccessDenied.of("no"), times=20))
        await refresh(stage)
        assert "no" in str(stage.refresh_failure)
        assert (held(stage.root), stage.failure) == (FILES, None)
        content.faults.clear()
    await refresh(stage)
    assert (held(stage.root)["a/2"], stage.refresh_failure) == (b"TWO", None)


def does_not_fit(monkeypatch, times):
    problems = [[AccessDenied.of("full").problems[0]]] * times
    answers = iter(problems)
    monkeypatch.setattr(next_version, "fit_problems", lambda *_, **__: next(answers, []))


async def test_a_version_that_is_read_is_not_removed_for_the_next_one(stage, content, clock, monkeypatch):
    content.objects["d/a/2"] = b"TWO"
    stage.file(stage.complete.digest, "a/1")
    does_not_fit(monkeypatch, 1)
    await refresh(stage)
    assert "full" in str(stage.refresh_failure)
    assert held(stage.root) == FILES
    does_not_fit(monkeypatch, 1)
    clock.seconds += UNREAD_SECONDS
    await refresh(stage)
    assert held(stage.root) == {**FILES, "a/2": b"TWO"}
    assert reads(content) == ["a/2"]
    assert list(stage.versions.files.old_numbers()) == []


async def test_a_volume_without_room_for_links_leaves_what_is_served(stage, content, monkeypatch):
    content.objects["d/a/2"] = b"TWO"

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", full)
        await refresh(stage)
    assert "No space left" in str(stage.refresh_failure)
    assert held(stage.root) == FILES
    await refresh(stage)
    assert held(stage.root)["a/2"] == b"TWO"


async def test_a_version_that_fits_in_no_way_leaves_what_is_served(stage, content, clock, monkeypatch):
    clock.seconds += UNREAD_SECONDS
    content.objects["d/a/2"] = b"TWO"
    does_not_fit(monkeypatch, 2)
    await refresh(stage)
    assert (held(stage.root), str(stage.refresh_failure)) == (FILES, "full.")
    await refresh(stage)
    assert held(stage.root) == {**FILES, "a/2": b"TWO"}


async def test_a_refresh_that_failed_is_tried_again(stage, content, clock, monkeypatch):
    monkeypatch.setattr(refresher, "SWEEP_SECONDS", 0.01)
    content.objects["d/a/2"] = b"TWO"
    content.faults.append(Fault("entries", error=AccessDenied.of("no"), times=1))
    keeping = asyncio.create_task(keep_current(stage, None))
    stage.ask_refresh()
    await until(lambda: stage.refresh_failure is not None)
    assert held(stage.root) == FILES
    clock.seconds += refresher.RETRY_SECONDS
    await until(lambda: held(stage.root)["a/2"] == b"TWO")
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    assert stage.refresh_failure is None


@pytest.mark.parametrize("error", [Changed.of("412"), NotFound.of("404")])
async def test_a_source_that_changes_during_a_refresh_is_listed_again(stage, content, error):
    content.objects |= {"d/a/1": b"ONE", "d/a/2": b"TWO"}
    content.faults.append(Fault("read", "a/1", error=error, times=refresher.MAX_CHANGES - 1))
    await refresh(stage)
    assert (held(stage.root)["a/1"], stage.refresh_failure) == (b"ONE", None)
    assert reads(content).count("a/2") <= 2  # what was fetched stays


async def test_a_source_that_always_changes_is_left_alone_for_a_while(stage, content):
    content.objects["d/a/1"] = b"ONE"
    content.faults.append(Fault("read", "a/1", error=Changed.of("412"), times=100))
    await refresh(stage)
    assert (held(stage.root), str(stage.refresh_failure)) == (FILES, "412.")


async def test_who_asks_again_sees_no_earlier_failure(stage, content):
    content.faults.append(Fault("entries", error=AccessDenied.of("no"), times=1))
    await refresh(stage)
    assert stage.refresh_failure is not None
    stage.ask_refresh()
    assert (stage.refresh_failure, stage.refreshing) == (None, True)


async def test_two_versions_together_do_not_exceed_the_size(content, tmp_path, clock):
    limited = holder_stage(content.uri, tmp_path / "held", size_limit=3 * PAGE_BYTES, now=clock)
    await limited.fill()
    content.objects |= {"d/a/1": b"ONE", "d/a/2": b"TWO"}
    limited.file(limited.complete.digest, "a/1")
    await refresh(limited)
    assert "takes 8.0 KiB in whole blocks, next to 8.0 KiB of other versions; --size is 12.0 KiB" in str(
        limited.refresh_failure
    )
    assert "Give --size 20Ki" in str(limited.refresh_failure)
    assert held(limited.root) == FILES
    clock.seconds += UNREAD_SECONDS
    await refresh(limited)
    assert held(limited.root) == {"a/1": b"ONE", "a/2": b"TWO", "b": b""}
    await limited.close()


async def test_the_next_holder_fetches_only_what_has_changed_meanwhile(stage, content, tmp_path):
    await stage.close()
    content.objects["d/a/2"] = b"TWO"
    again = holder_stage(content.uri, tmp_path / "held")
    await again.fill()
    assert held(again.root) == FILES  # served at once, while the source is listed
    keeping = asyncio.create_task(keep_current(again, None))
    await until(lambda: held(again.root)["a/2"] == b"TWO")
    assert reads(content) == ["a/2"]
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    await again.close()


async def test_a_refresh_is_asked_for_or_due(stage, content, clock):
    keeping = asyncio.create_task(keep_current(stage, 60.0))
    await asyncio.sleep(0)
    content.objects["d/a/2"] = b"TWO"
    stage.ask_refresh()
    assert stage.refreshing
    await until(lambda: not stage.refreshing)
    assert held(stage.root)["a/2"] == b"TWO"
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)
    content.objects["d/a/2"] = b"2"
    keeping = asyncio.create_task(keep_current(stage, 60.0))
    await asyncio.sleep(0)
    clock.seconds += 61
    stage.asked.set()  # ends the wait, as the time of a real clock would
    await until(lambda: held(stage.root)["a/2"] == b"2")
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_readers_of_a_version_that_was_dropped_do_not_wait_for_the_next_request(
    stage, content, clock, monkeypatch
):
    monkeypatch.setattr(refresher, "SWEEP_SECONDS", 0.01)
    content.objects["d/a/2"] = b"TWO"
    content.faults.append(Fault("read", error=AccessDenied.of("no")))
    clock.seconds += UNREAD_SECONDS
    does_not_fit(monkeypatch, 1)
    await refresh(stage)
    assert (stage.complete, "no" in str(stage.refresh_failure)) == (None, True)
    keeping = asyncio.create_task(keep_current(stage, None))
    await until(lambda: stage.complete is not None)
    assert held(stage.root)["a/2"] == b"TWO"
    keeping.cancel()
    await asyncio.gather(keeping, return_exceptions=True)


async def test_an_outage_is_tried_again(stage, content):
    content.objects["d/a/2"] = b"TWO"
    content.faults.append(Fault("read", error=Unavailable.of("gone"), times=2))
    await refresh(stage)
    assert held(stage.root)["a/2"] == b"TWO"


NAMES = st.sampled_from(["a", "d/b", "d/c", "e"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), NAMES, st.binary(max_size=3)),
        st.tuples(st.just("delete"), NAMES),
        st.tuples(st.just("refresh")),
        st.tuples(st.just("restart")),
        st.tuples(st.just("read"), st.integers(0, 3)),
        st.tuples(st.just("wait"), st.sampled_from([1.0, UNREAD_SECONDS])),
    ),
    max_size=14,
)


@settings(max_examples=60, deadline=None)
@given(STEPS)
async def test_in_any_order_readers_see_one_version_and_each_difference_is_fetched_once(steps):
    clock, content = Clock(), Content()
    content.objects = {"d/a": b"1", "d/d/b": b"2", "d/keep": b"k"}
    uri = "memory://refresher/d"
    with tempfile.TemporaryDirectory() as folder:
        await _run(steps, clock, content, uri, Path(folder) / "held")


async def _run(steps, clock, content, uri, root):
    CONTENTS["refresher"] = content
    stage = holder_stage(uri, root, now=clock)
    await stage.fill()
    versions = {stage.complete.digest: {k[2:]: v for k, v in content.objects.items()}}
    read_at = {}
    try:
        for kind, *arguments in steps:
            content.calls.clear()
            before = held(stage.root)
            match kind:
                case "write":
                    content.objects[f"d/{arguments[0]}"] = arguments[1]
                case "delete":
                    content.objects.pop(f"d/{arguments[0]}", None)
                case "refresh":
                    await refresh(stage)
                    source = {name[2:]: data for name, data in content.objects.items()}
                    versions[stage.complete.digest] = source
                    assert held(stage.root) == source
                    differs = {name for name, data in source.items() if before.get(name) != data and data}
                    assert sorted(reads(content)) == sorted(differs)
                case "restart":
                    await stage.close()
                    stage = holder_stage(uri, root, now=clock)
                    await stage.fill()
                    assert held(stage.root) == before
                    read_at = {stage.complete.digest: clock()}
                case "read":
                    digest = list(versions)[arguments[0] % len(versions)]
                    recent = clock() - read_at.get(digest, -1e9) < UNREAD_SECONDS
                    for name, data in versions[digest].items():
                        found = stage.file(digest, name)
                        assert found is not None or not recent
                        assert found is None or file_of(stage, digest, name) == data
                    if stage.file(digest, "keep") is not None:
                        read_at[digest] = clock()
                case "wait":
                    clock.seconds += arguments[0]
                    await stage.versions.remove_unread()
    finally:
        await stage.close()

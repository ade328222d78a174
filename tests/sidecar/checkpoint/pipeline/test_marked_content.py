"""A mark applies to what the files contain, also where their identity does not show a change."""

import asyncio
import mmap

from podferry.sidecar.checkpoint.detect.open_files import OpenFiles
from podferry.sidecar.checkpoint.upload.uploader import Uploader

ONE, TWO = b"1" * 5000, b"2" * 5000
NAME = "last.bin"


async def test_a_mark_is_void_once_the_content_changes_through_a_mapping(rig, monkeypatch):
    """The trainer is killed in a later save: what is uploaded is not what was marked."""
    rig.open_files = OpenFiles(sees_writers=True)
    go_on, send = asyncio.Event(), Uploader.send

    async def late(*args):
        await go_on.wait()
        return await send(*args)

    monkeypatch.setattr(Uploader, "send", late)
    async with rig.running() as pipeline:
        path = rig.write(NAME, ONE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = b"0" * len(ONE)  # later writes touch no time
            await pipeline.mark("last")
            await rig.until(pipeline._queue.versions)
            mapped[:] = TWO
            go_on.set()
            await rig.committed(1)
            assert pipeline._detector.marks == {}
            assert [str(one.kind) for one in rig.store.commits()[0].doubts] == ["open", "unproven"]
    assert [rig.store.bytes_of(one)[NAME] for one in rig.store.commits()] == [TWO]


async def test_a_mark_of_a_mapped_file_holds_while_its_content_is_the_same(rig):
    rig.open_files = OpenFiles(sees_writers=True)
    async with rig.running() as pipeline:
        path = rig.write(NAME, ONE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = TWO
            await pipeline.mark("last")
            await rig.committed(1)
    assert rig.store.commits()[0].doubts == ()


async def test_a_mark_that_comes_during_an_upload_is_not_void(rig, hold_sent):
    rig.open_files = OpenFiles(sees_writers=True)
    sent, go_on = hold_sent()
    async with rig.running() as pipeline:
        path = rig.write(NAME, ONE)
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
            mapped[:] = b"0" * len(ONE)
            await pipeline.mark("last")
            await sent.wait()
            mapped[:] = TWO
            await pipeline.mark("last")
            go_on.set()
            await rig.committed(1)
    assert [rig.store.bytes_of(one)[NAME] for one in rig.store.commits()] == [TWO]
    assert rig.store.commits()[0].doubts == ()

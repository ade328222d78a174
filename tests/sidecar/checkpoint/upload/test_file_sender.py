"""Uploads that are interrupted at any moment, of files that change at any moment."""

import os
import random

import msgspec
import pytest
import xxhash

from podferry.contract.destination.commit import checkpoint_folder
from podferry.contract.errors import BucketNotFound, Changed, NotFound, Unavailable
from podferry.sidecar.checkpoint.detect.detector import scan_checkpoints
from podferry.sidecar.checkpoint.upload import verified_reader as module
from podferry.sidecar.checkpoint.upload.hardlink_hold import HardlinkHolds
from podferry.sidecar.checkpoint.upload.verified_reader import VerifiedReader
from podferry.storage.memory.store import Fault

PART = 1024
AT_ONCE = 3
SIZES = {"s/a": 9 * PART + 1, "s/b": 700, "s/c": 4 * PART, "s/d": 0, "s/e": 700, "s/f": PART, "s/g": 2 * PART}


class Killed(BaseException):
    """The process ends here."""


class Wire:
    """Counts what arrives, calls `moment` before and after each call, and forgets nothing."""

    def __init__(self, store):
        self.bytes = 0
        self.moments = 0
        self.moment = lambda count: None
        self._send, self._write = store.multipart.send, store.write
        store.multipart.send, store.write = self.send, self.write
        for name in ("begin", "complete"):
            setattr(store.multipart, name, self.around(getattr(store.multipart, name)))

    def passes(self):
        self.moments += 1
        self.moment(self.moments)

    def around(self, call):
        async def passing(*given):
            self.passes()
            answer = await call(*given)
            self.passes()
            return answer

        return passing

    async def send(self, name, upload, number, data):
        receipt = await self.around(self._send)(name, upload, number, data)
        self.bytes += len(data)
        return receipt

    async def write(self, name, body, *mode):
        if "/.podferry/" not in name and isinstance(body, bytes):
            self.bytes += len(body)
        return await self.around(self._write)(name, body, *mode)


@pytest.fixture(autouse=True)
def small(rig, monkeypatch):
    rig.settings = msgspec.structs.replace(rig.settings, part_bytes=PART, parts_in_flight=AT_ONCE)
    monkeypatch.setattr(module, "READ_BYTES", 500)


@pytest.fixture
def wire(rig):
    return Wire(rig.store)


@pytest.fixture
def link(rig):
    def link(sizes=SIZES):
        for name, size in sizes.items():
            rig.write(name, os.urandom(size))
        return HardlinkHolds(rig.holds).link(scan_checkpoints(rig.root)[1]["s"], rig.root, 1.0)

    return link


def journals(rig):
    return list(rig.control.glob("uploads/*"))


def contents(held):
    return {name: (held.directory / name).read_bytes() for name, _ in held.files}


def kill_at(wire, moment):
    def strike(count):
        if count >= moment:  # what runs beside it ends too
            raise Killed

    wire.moments, wire.moment = 0, strike


async def killed(work):
    """Run until killed; returns whether it was."""
    try:
        await work
    except (Killed, BaseExceptionGroup):
        return True
    return False


@pytest.mark.parametrize("seed", range(60))
async def test_a_worker_that_was_killed_sends_only_the_parts_in_flight_again(rig, wire, link, seed):
    chance = random.Random(seed)  # noqa: S311 - draws faults, no secrets
    held = link()
    expected = contents(held)
    kills = 0
    for _ in range(chance.randint(1, 3)):
        kill_at(wire, chance.randint(1, 40))
        kills += await killed(rig.uploader().upload(held))
        (held,) = HardlinkHolds(rig.holds).adopt()
    wire.moment = lambda count: None
    uploader = rig.uploader()
    await uploader.sweep([held])
    commit = await uploader.upload(held)
    assert rig.store.bytes_of(commit) == expected
    assert wire.bytes - sum(SIZES.values()) <= kills * AT_ONCE * PART
    assert len(rig.store.commits()) == 1
    assert journals(rig) == []


async def test_without_a_journal_all_would_be_sent_again(rig, wire, link):
    held = link()
    kill_at(wire, 40)
    assert await killed(rig.uploader().upload(held))
    (rig.control / "uploads/1.jsonl").unlink()
    wire.moment = lambda count: None
    await rig.uploader().upload(held)
    assert wire.bytes - sum(SIZES.values()) > AT_ONCE * PART


@pytest.mark.parametrize("seed", range(30))
async def test_a_journal_that_was_torn_costs_only_what_it_lacks(rig, wire, link, seed):
    chance = random.Random(seed)  # noqa: S311 - draws faults, no secrets
    held = link()
    expected = contents(held)
    kill_at(wire, chance.randint(5, 60))
    await killed(rig.uploader().upload(held))
    journal = rig.control / "uploads/1.jsonl"
    if journal.exists():
        text = journal.read_bytes()
        journal.write_bytes(text[: chance.randint(0, len(text))])
    wire.moment = lambda count: None
    assert rig.store.bytes_of(await rig.uploader().upload(held)) == expected


async def test_a_failure_of_the_store_costs_only_the_parts_in_flight_too(rig, wire, link):
    held = link({"s/a": 9 * PART})
    uploader = rig.uploader()
    rig.faults.append(Fault("send", "*#7", times=3, error=Unavailable.of("no route")))
    with pytest.raises(Unavailable):
        await uploader.send(held)
    result = await uploader.send(held)
    assert result.sent < 9 * PART
    assert wire.bytes - 9 * PART <= AT_ONCE * PART


@pytest.mark.parametrize("call", ["send", "complete"])
@pytest.mark.parametrize("at", [0, 3])
async def test_an_upload_that_the_store_has_forgotten_starts_over(rig, link, call, at):
    held = link()
    rig.faults.append(Fault(call, "*/s/a*", forget=True, skip=at if call == "send" else 0))
    assert rig.store.bytes_of(await rig.uploader().upload(held)) == contents(held)


async def test_an_upload_forgotten_while_no_worker_ran_starts_over(rig, wire, link):
    held = link()
    kill_at(wire, 20)
    assert await killed(rig.uploader().upload(held))
    rig.content.uploads.clear()
    wire.moment = lambda count: None
    assert rig.store.bytes_of(await rig.uploader().upload(held)) == contents(held)


async def test_a_store_that_forgets_every_upload_fails_the_attempt(rig, link):
    held = link()
    rig.faults.append(Fault("complete", "*/s/a", times=99, forget=True))
    with pytest.raises(NotFound, match="no longer knows"):
        await rig.uploader().upload(held)


async def test_an_upload_to_a_missing_bucket_does_not_start_over(rig, link):
    held = link({"s/a": 2 * PART})
    rig.faults.append(Fault("send", times=99, error=BucketNotFound.of("no bucket")))
    with pytest.raises(BucketNotFound):
        await rig.uploader().upload(held)
    assert [call for call, _ in rig.content.calls].count("begin") == 1


async def test_an_object_that_has_gone_since_it_was_sent_is_sent_again(rig, link):
    held = link({"s/a": 2 * PART, "s/b": 1, "s/c": 5})
    uploader = rig.uploader()
    result = await uploader.send(held)
    for name in ("s/a", "s/b"):
        del rig.content.objects[f"base/run/{result.folder}/{name}"]
    again = await uploader.send(held)
    assert again.sent == 2 * PART + 1
    assert rig.store.bytes_of(await uploader.upload(held)) == contents(held)


async def test_a_journal_of_another_hold_with_the_same_number_is_aborted(rig, wire, link):
    held = link()
    kill_at(wire, 20)
    assert await killed(rig.uploader().upload(held))
    assert rig.content.uploads
    held.release()
    other = link()
    assert other.number == held.number
    wire.moment = lambda count: None
    assert rig.store.bytes_of(await rig.uploader().upload(other)) == contents(other)
    assert rig.content.uploads == {}


@pytest.mark.parametrize("deaf", [False, True])
async def test_uploads_without_a_hold_are_aborted_at_the_start(rig, wire, link, deaf):
    held = link()
    kill_at(wire, 20)
    assert await killed(rig.uploader().upload(held))
    wire.moment = lambda count: None
    await rig.uploader().sweep([held])
    assert rig.content.uploads
    held.release()
    if deaf:
        rig.faults.append(Fault("abort", times=99, error=Unavailable.of("no route")))
    await rig.uploader().sweep([])
    assert bool(rig.content.uploads) is deaf
    assert journals(rig) == []


def overwrite(path, chance, *, pretend):
    """Write other bytes in place at two places, and pretend that nothing happened."""
    before = path.stat()
    with path.open("r+b") as file:
        for _ in range(2):
            file.seek(chance.randrange(before.st_size))
            file.write(b"!")
    if pretend:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("seed", range(30))
async def test_an_overwrite_while_no_worker_ran_is_never_mixed_with_what_was_sent(rig, wire, link, seed):
    chance = random.Random(seed)  # noqa: S311 - draws faults, no secrets
    held = link({"s/a": 6 * PART, "s/b": 900})
    old = contents(held)
    kill_at(wire, chance.randint(5, 25))
    await killed(rig.uploader().upload(held))
    for name in old:
        overwrite(held.directory / name, chance, pretend=True)
    wire.moment = lambda count: None
    try:
        commit = await rig.uploader().upload(held)
    except Changed:
        assert (rig.store.commits(), rig.content.uploads) == ([], {})
    else:
        assert rig.store.bytes_of(commit) in (old, contents(held))


def hook(monkeypatch, wire, moment):
    """Call `moment` at each chunk of the first pass, and around each part of the second and each call."""
    chunks, part = VerifiedReader._chunks, VerifiedReader.part

    def watched_chunks(self, *given):
        for chunk in chunks(self, *given):
            wire.passes()
            yield chunk

    def watched_part(self, *given):
        wire.passes()
        data = part(self, *given)
        wire.passes()
        return data

    monkeypatch.setattr(VerifiedReader, "_chunks", watched_chunks)
    monkeypatch.setattr(VerifiedReader, "part", watched_part)
    wire.moment = moment


def promise(held, files):
    """The folder of this content."""
    triples = [(name, len(data), xxhash.xxh3_128_hexdigest(data)) for name, data in files.items()]
    return checkpoint_folder(held.candidate.name, triples)


@pytest.mark.parametrize("pretend", [False, True])
@pytest.mark.parametrize("chunked", [False, True])
async def test_an_overwrite_at_any_moment_never_makes_an_object_of_other_bytes(
    rig, wire, link, monkeypatch, pretend, chunked
):
    rig.settings = msgspec.structs.replace(rig.settings, threads=1)
    if chunked:
        rig.store.multipart = None
    seen = set()
    for moment in range(1, 200):
        chance = random.Random(moment)  # noqa: S311 - draws faults, no secrets
        held = link({"s/a": 3 * PART + 5, "s/b": 900})
        old, wire.moments = contents(held), 0
        victim = held.directory / chance.choice(["s/a", "s/b"])
        with monkeypatch.context() as patched:
            hook(
                patched,
                wire,
                lambda count, moment=moment, victim=victim, chance=chance: (
                    overwrite(victim, chance, pretend=pretend) if count == moment else None
                ),
            )
            uploader = rig.uploader()
            try:
                result = await uploader.send(held)
            except Changed:
                seen.add("changed")
                assert journals(rig) == []
                assert rig.content.uploads == {}
            else:
                keys = {file.name: f"base/run/{file.object}" for file in result.files}
                found = {name: rig.content.objects[key] for name, key in keys.items()}
                assert found in (old, contents(held))
                assert result.folder == promise(held, found)
                seen.add("old" if found == old else "new")
                await uploader.forget(held)
        reached = wire.moments >= moment
        held.release()
        if not reached:
            break
    assert not reached, "every moment has been tried"
    assert seen >= {"changed", "old"}

from podferry.cache.peers.peer_store import peer_source
from podferry.contract.cache_api import Holder
from podferry.contract.manifest import Entry
from podferry.sidecar.fetch.source import FetchSource
from podferry.storage.checksum.checksums import Checksum, ChecksumKind, crc64
from podferry.storage.holder.client import HolderClient
from podferry.storage.memory.store import MemoryStore

A, B = Entry("a/1", 3, "t"), Entry("b", 5, "u")
OF_THE_STORE = Checksum(ChecksumKind.CRC32C, b"1234")


def source(content, **settings):
    client = HolderClient(Holder("http://127.0.0.1:9"))
    return peer_source(
        FetchSource(MemoryStore(content.uri), **settings), client, "0" * 64, {A: crc64(b"one"), B: 5}
    )


async def test_files_are_requested_of_the_holder_by_its_digest(content):
    request = source(content).store.request_builder.build(A, 0, 3)
    assert request.startswith(b"GET /v1/files/" + b"0" * 64 + b"/a/1 HTTP/1.1\r\n")
    assert b"\r\nPodferry-Holder: 1\r\n" in request


async def test_what_the_holder_does_not_send_is_read_from_the_source(content):
    assert await source(content).store.read("a/1", 0, 3) == b"one"
    assert content.calls == [("read", "a/1")]
    assert isinstance(source(content).origin, MemoryStore)


async def test_the_stores_own_checksum_counts_more(content):
    computed = Checksum(ChecksumKind.CRC64NVME, crc64(b"one").to_bytes(8, "big"))
    assert source(content).checksum_of(A) == computed
    assert source(content, checksum_of=lambda entry: OF_THE_STORE).checksum_of(A) == OF_THE_STORE

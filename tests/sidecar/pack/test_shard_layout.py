"""Shards are planned byte by byte, as tar writes them."""

from __future__ import annotations

import tarfile

from hypothesis import given, settings
from hypothesis import strategies as st

from podferry.sidecar.pack.shard_layout import batches, header, plan_shards
from tests.support.pack_site import ENTRIES


@given(ENTRIES)
@settings(max_examples=40, deadline=None)
def test_headers_match_the_library(entries):
    for entry in entries:
        info = tarfile.TarInfo(entry.name)
        info.size = entry.size
        assert header(entry) == info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


@given(ENTRIES, st.integers(1, 1 << 41), st.integers(1 << 34, 1 << 40))
@settings(max_examples=40, deadline=None)
def test_the_planned_offsets_are_those_written(entries, shard_bytes, batch_bytes):
    for shard in plan_shards(entries, shard_bytes):
        at, offsets, sizes = 0, [], {}
        for item in (item for batch in batches(shard, batch_bytes) for item in batch):
            if item.header:
                offsets.append(at + len(item.header))
            assert item.start == sizes.get(item.entry.name, 0)
            sizes[item.entry.name] = item.start + item.length
            at += item.bytes
        assert tuple(offsets) == shard.offsets
        assert sizes == {entry.name: entry.size for entry in shard.entries}
        assert at + 1024 == shard.bytes

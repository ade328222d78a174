"""Digests of shards and members."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.pack.shard_hasher import ShardHasher


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=6), st.lists(st.integers(1, 9)))
def test_digests_do_not_depend_on_the_chunks(gaps, cuts):
    ranges, at = [], 0
    for gap, size in gaps:
        ranges.append((at + gap, size))
        at += gap + size
    data = os.urandom(at + 3)
    once, pieces = ShardHasher(ranges), ShardHasher(ranges)
    once.update(data)
    start = 0
    for cut in [*cuts, len(data)]:
        pieces.update(data[start : start + cut])
        start += cut
    each = []
    for offset, size in ranges:
        one = ShardHasher([])
        one.update(data[offset : offset + size])
        each.append(one.hexdigest())
    assert once.member_digests == pieces.member_digests == each
    assert once.hexdigest() == pieces.hexdigest()

"""Who gets which buffer, and what it costs."""

from __future__ import annotations

import resource
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.http.buffer_pool import BUFFER_BYTES, BufferPool


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=60))
def test_no_two_open_connections_share_a_buffer(steps):
    """A step opens a connection (None) or closes one of those that are open."""
    pool, held, most, seen = BufferPool(), [], 0, {}
    for step in steps:
        if step is None:
            held.append(pool.acquire())
            seen[id(held[-1])] = held[-1]
        elif held:
            pool.release(held.pop(step % len(held)))
        most = max(most, len(held))
        assert len({id(one) for one in held}) == len(held)
    assert len(seen) == most, "as many as were open at once"
    assert all(len(one) == BUFFER_BYTES for one in seen.values())


def test_a_buffer_takes_no_memory_until_it_is_written():
    """Hundreds of connections for small files are charged for what they receive, not for what they could."""
    page = resource.getpagesize()

    def resident():
        return int(Path("/proc/self/statm").read_text().split()[1]) * page

    pool, before = BufferPool(), resident()
    buffers = [pool.acquire() for _ in range(400)]
    assert resident() - before < len(buffers) * BUFFER_BYTES // 10
    for buffer in buffers:
        buffer[:page] = b"x" * page
    assert resident() - before < len(buffers) * BUFFER_BYTES // 4

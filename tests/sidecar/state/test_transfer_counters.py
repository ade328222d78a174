import msgspec
from hypothesis import given
from hypothesis import strategies as st

from podferry.contract.status import DatasetStatus
from podferry.sidecar.state.transfer_counters import FIRST_BYTE_BUCKETS, RateMeter, TransferCounters


def counted(**figures):
    counters = TransferCounters(**figures)
    for seconds in (0.0, 0.001, 0.0011, 9.0, 11.0):
        counters.first_byte(seconds)
    return counters


def test_a_time_counts_in_the_first_bucket_that_contains_it():
    """A bound belongs to its bucket, as in Prometheus."""
    counts = counted().first_bytes
    assert {
        bound: count for bound, count in zip((*FIRST_BYTE_BUCKETS, None), counts, strict=True) if count
    } == {
        0.001: 2,
        0.0025: 1,
        10.0: 1,
        None: 1,
    }


def test_what_a_worker_process_takes_adds_up_to_what_it_counted():
    worker, mine = counted(bytes=7, files=2, connections=3), TransferCounters()
    mine.add(worker.take())
    worker.bytes += 5
    worker.connections -= 1
    worker.first_byte(9.0)
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(worker.take()), type=TransferCounters)
    mine.add(sent)
    assert (mine.bytes, mine.files, mine.connections) == (12, 2, 2)
    assert sum(mine.first_bytes) == 6
    assert mine.first_byte_seconds == counted().first_byte_seconds + 9.0
    assert worker.take() == TransferCounters()


def test_counters_are_part_of_the_status():
    counters = TransferCounters()
    status = DatasetStatus("s3://b", "/d", transfer=counters)
    counters.retries += 2
    document = msgspec.json.decode(msgspec.json.encode(status))
    assert document["transfer"]["retries"] == 2
    assert len(document["transfer"]["first_bytes"]) == len(FIRST_BYTE_BUCKETS) + 1


def test_a_rate_looks_back_as_far_as_its_window():
    meter = RateMeter(window=5.0)
    assert meter.rate(0.0, 0) == 0.0
    assert meter.rate(0.0, 10) == 0.0
    assert meter.rate(2.0, 100) == 50.0
    assert meter.rate(4.0, 200) == 50.0
    assert [meter.rate(now, 200) for now in (6.0, 8.0, 10.0)] == [200 / 6, 100 / 6, 0.0]


@given(st.lists(st.tuples(st.floats(0.0001, 3.0), st.integers(0, 10**9)), min_size=1, max_size=60))
def test_a_rate_is_never_above_the_fastest_step(steps):
    meter, now, count = RateMeter(), 0.0, 0
    meter.rate(now, count)
    for seconds, more in steps:
        now, count = now + seconds, count + more
        found = meter.rate(now, count)
        assert 0 <= found <= max(more / seconds for seconds, more in steps) * 1.001

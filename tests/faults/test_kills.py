"""Kills of the worker: where they strike, what is counted, and a short run."""

import json
import time

import pytest

from faults.counting import Again, Counter, Transfer, data_key, sent_again
from faults.kills import records, report
from faults.lives import too_much
from faults.messages import parse_head
from faults.moments import ANSWER, DATA, KILLS, MOMENTS, REQUEST, SAVE, Kill, life
from faults.plan import MIB
from faults.store import served

OBJECT = "/bucket/7/run/step-1-abc/model.safetensors"
COMMIT = "/bucket/7/run/.podferry/commits/000000000001.json"
ANSWERED = parse_head(b"HTTP/1.1 200 OK\r\n\r\n")
REFUSED = parse_head(b"HTTP/1.1 500 Oh\r\n\r\n")


def request(target, method="PUT", length=100):
    return parse_head(f"{method} {target} HTTP/1.1\r\nContent-Length: {length}\r\n\r\n".encode())


def part(number, key=OBJECT):
    return request(f"{key}?partNumber={number}&uploadId=u")


def transfers(*sent):
    return [Transfer((OBJECT, number), epoch, count) for number, epoch, count in sent]


def test_a_seed_determines_a_life():
    assert life(7) == life(7) != life(8)
    assert len(life(7).kills) == KILLS
    assert life(7).kills[0].fresh


def test_every_moment_comes():
    assert {kill.kind for seed in range(50) for kill in life(seed).kills} == set(MOMENTS)


def test_a_part_is_known_by_its_object_and_number():
    assert data_key(part(3)) == (OBJECT, 3)
    assert data_key(request("/bucket/a%20b")) == ("/bucket/a b", 0)
    assert data_key(request(COMMIT)) is None
    assert data_key(request(OBJECT, "GET")) is None
    assert data_key(request(f"{OBJECT}?uploads", "POST")) is None


def test_what_is_sent_once_is_not_sent_again():
    assert sent_again(transfers((1, 0, 9), (2, 0, 9), (3, 1, 9))) == {}


def test_what_a_kill_cut_off_is_charged_to_it():
    """The second worker was killed before it reached part 2, which is still charged to the first kill."""
    found = sent_again(transfers((1, 0, 9), (2, 0, 4), (1, 1, 5), (1, 2, 9), (2, 2, 7), (3, 2, 9)))
    assert found == {1: Again(parts=2, bytes=5 + 7), 2: Again(parts=1, bytes=9)}


def test_what_was_read_after_a_kill_is_that_kills():
    """Its sender was dead by then, and the next worker sends it again."""
    assert sent_again(transfers((1, 1, 4), (1, 1, 9))) == {1: Again(parts=1, bytes=9)}


def test_what_is_sent_twice_without_a_kill_is_charged_to_none():
    assert sent_again(transfers((1, 0, 9), (1, 0, 9))) == {0: Again(parts=1, bytes=9)}


def test_small_files_are_counted_separately():
    assert sent_again(transfers((0, 0, 3), (0, 1, 4))) == {1: Again(small=4)}


class Struck:
    def __init__(self):
        self.lives, self.count = True, 0
        self.counter = Counter(self.strike)

    def strike(self):
        self.count += self.lives
        return self.lives


@pytest.fixture
def struck():
    return Struck()


def test_data_strikes_when_its_share_of_what_is_left_has_passed(struck):
    struck.counter.saved = 200
    done = struck.counter(part(1))
    done.passed(100)
    done.answered(ANSWERED)
    fired = struck.counter.arm(Kill(DATA, 0.5, fresh=False))
    seen = struck.counter(part(2))
    seen.passed(49)
    assert not fired.is_set()
    seen.passed(1)
    assert fired.is_set()
    seen.passed(50)
    assert (struck.count, struck.counter.epoch) == (1, 1)
    assert [transfer.bytes for transfer in struck.counter.transfers] == [100, 100]


def test_what_a_dead_worker_had_on_its_way_is_no_moment(struck):
    struck.counter.saved = 100
    seen = struck.counter(part(1))
    struck.counter.arm(Kill(DATA, 0.0, fresh=False))
    seen.passed(1)
    fired = struck.counter.arm(Kill(DATA, 0.0, fresh=False))
    seen.passed(1)
    assert not fired.is_set()
    struck.counter(part(1)).passed(1)
    assert fired.is_set()


def test_without_a_worker_it_strikes_the_next_time(struck):
    fired = struck.counter.arm(Kill(REQUEST, 0.0, fresh=False))
    struck.lives = False
    struck.counter(part(1))
    assert not fired.is_set()
    struck.lives = True
    struck.counter(part(2))
    assert fired.is_set()


def test_requests_and_answers_are_counted(struck):
    fired = struck.counter.arm(Kill(ANSWER, 0.1, fresh=False))
    struck.counter(part(1)).answered(REFUSED)
    struck.counter(part(1)).answered(ANSWERED)
    assert not fired.is_set()
    struck.counter(part(2)).answered(ANSWERED)
    assert fired.is_set()


def test_a_time_after_a_save_is_a_moment(struck):
    fired = struck.counter.arm(Kill(SAVE, 0.5, fresh=True))
    struck.counter.tick(time.monotonic())
    assert not fired.is_set()
    struck.counter.tick(time.monotonic() + 1.0)
    assert fired.is_set()


def test_commits_are_counted_when_the_store_has_them(struck):
    struck.counter(request(COMMIT)).answered(REFUSED)
    struck.counter(request(COMMIT)).answered(ANSWERED)
    assert struck.counter.commits == 1


@pytest.fixture(scope="module")
def store():
    with served("moto") as found:
        yield found


def test_a_kill_may_cost_what_was_in_flight_and_no_more():
    again = {1: Again(parts=4, bytes=64, small=1), 2: Again(parts=5, bytes=65, small=1)}
    assert [violation.figure for violation in too_much(again, 65)] == ["again"]
    assert list(too_much({}, 65)) == []


def test_nothing_may_be_sent_twice_without_a_kill():
    assert [violation.figure for violation in too_much({0: Again(small=1)}, 65)] == ["again"]


def test_three_kills_lose_nothing(store, tmp_path, capsys):
    def run():
        return list(records(1, 3, store, tmp_path, sizes=[24 * MIB]))

    done = run()
    assert report(done, store, 0.0) == 0
    assert "3 kills of the worker" in capsys.readouterr().out
    assert sum(record["again"] for record in done) > 0
    assert done == run(), "a record is not played again"
    assert json.loads((tmp_path / "1-3.json").read_text()) == done[0]

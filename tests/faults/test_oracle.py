import hashlib
import json

import obstore
import pytest
import xxhash
from obstore.store import MemoryStore

from faults.ledger import Ledger
from faults.oracle import Oracle

LINEAGE = "1/episode"


class World:
    """A destination and a ledger, written by hand."""

    def __init__(self, folder):
        self.store = MemoryStore()
        self.path = folder / "ledger.jsonl"
        self.path.touch()
        self.loads = 0
        self.loaded = ValueError("torn")

    def load(self, folder):
        self.loads += 1
        if isinstance(self.loaded, Exception):
            raise self.loaded
        return self.loaded

    def oracle(self):
        return Oracle(self.store, LINEAGE, Ledger(self.path), self.load)

    def note(self, event, step, **more):
        with self.path.open("a") as file:
            file.write(json.dumps({"event": event, "step": step, **more}) + "\n")

    def save(self, step, **files):
        """The trainer has finished a save."""
        held = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in files.items()}
        self.note("begin", step)
        self.note("finish", step, checkpoints=[held])

    def commit(self, number, folder, writer="a", *, doubts=(), **files):
        listed = []
        for name, data in files.items():
            obstore.put(self.store, f"{LINEAGE}/{folder}/{name}", data)
            digest = xxhash.xxh3_128_hexdigest(data)
            listed.append({"name": name, "object": f"{folder}/{name}", "size": len(data), "xxh128": digest})
        confidence = "doubtful" if doubts else "sure"
        document = {"checkpoint": folder, "files": listed, "writer": writer, "confidence": confidence}
        document |= {"doubts": [{"kind": kind} for kind in doubts]} if doubts else {}
        obstore.put(self.store, self.name(number), json.dumps(document).encode())

    def confirm(self, number):
        obstore.put(self.store, f"{LINEAGE}/.podferry/confirmed/{number:012d}.json", b"{}")

    def name(self, number):
        return f"{LINEAGE}/.podferry/commits/{number:012d}.json"


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    made.save(1, a=b"one", b=b"uno")
    made.save(2, a=b"two", b=b"due")
    return made


@pytest.fixture
def good(world):
    """Two commits, verified."""
    world.commit(1, "x-1", a=b"one", b=b"uno")
    world.commit(2, "x-2", a=b"two", b=b"due")
    oracle = world.oracle()
    assert oracle.look() == []
    return oracle


def figures(found):
    return [violation.figure for violation in found]


def test_finished_saves_are_good(world, good):
    assert good.commits == 2
    assert (good.newest.sequence, good.newest.step) == (2, 2)
    assert good.look(reread=True) == []
    assert world.loads == 0


def test_an_object_that_is_missing_is_wrong(world):
    world.commit(1, "x-1", a=b"one", b=b"uno")
    obstore.delete(world.store, f"{LINEAGE}/x-1/b")
    oracle = world.oracle()
    assert figures(oracle.look()) == ["wrong"]
    assert oracle.newest is None


def test_an_object_of_another_content_is_wrong(world):
    world.commit(1, "x-1", a=b"one", b=b"uno")
    obstore.put(world.store, f"{LINEAGE}/x-1/b", b"UNO")
    assert figures(world.oracle().look()) == ["wrong"]


def test_files_of_two_saves_are_wrong_together(world):
    world.commit(1, "x-1", a=b"one", b=b"due")
    assert figures(world.oracle().look()) == ["wrong"]


def test_a_part_of_a_save_is_wrong(world):
    world.commit(1, "x-1", a=b"one")
    assert figures(world.oracle().look()) == ["wrong"]


def test_a_document_that_is_no_commit_is_wrong(world):
    obstore.put(world.store, world.name(1), b"{")
    assert figures(world.oracle().look()) == ["wrong"]


def test_each_problem_is_reported_once(world):
    obstore.put(world.store, world.name(1), b"{")
    oracle = world.oracle()
    assert figures(oracle.look()) == ["wrong"]
    assert oracle.look(reread=True) == []


def test_an_unrecorded_finished_save_is_judged_by_the_library(world):
    world.note("begin", 3)
    world.commit(1, "x-3", a=b"three")
    world.loaded = 3
    oracle = world.oracle()
    assert oracle.look() == []
    assert oracle.newest.step == 3
    world.loaded = 4
    assert figures(world.oracle().look()) == ["wrong"]


def test_a_removed_commit_is_lost(world, good):
    obstore.delete(world.store, world.name(1))
    assert figures(good.look()) == ["lost"]
    assert good.look() == []


def test_removed_data_of_a_commit_is_lost(world, good):
    obstore.delete(world.store, f"{LINEAGE}/x-2/a")
    assert figures(good.look(reread=True)) == ["lost"]


def test_overwritten_data_of_a_commit_is_lost(world, good):
    obstore.put(world.store, f"{LINEAGE}/x-2/a", b"TWO")
    assert figures(good.look(reread=True)) == ["lost"]


def test_a_commit_that_replaces_another_is_a_loss(world, good):
    world.commit(2, "x-1", "b", a=b"one", b=b"uno")
    assert figures(good.look()) == ["lost"]


def test_what_is_reported_as_durable_must_be_committed(world, good):
    world.note("durable", 2)
    assert good.look() == []
    world.save(3, a=b"three")
    world.note("durable", 3)
    assert figures(good.look()) == ["claimed"]
    assert good.claimed(2, "somebody") == []
    assert figures(good.left(3)) == ["left"]


@pytest.fixture
def torn(world):
    """The trainer died in step 4, after the rename: the library's own check accepts it."""
    world.save(3, last=b"three")
    world.note("begin", 4)
    world.note("dies", 4)
    world.loaded = 4
    return world


def test_what_a_torn_save_has_replaced_need_not_be_committed(torn):
    """It died between the rename and the note: step 3 no longer exists and cannot become durable."""
    torn.commit(1, "last-4", last=b"four")
    oracle = torn.oracle()
    assert oracle.look() == []
    assert oracle.claimed(3, "somebody") == []


def test_a_torn_save_replaces_nothing_that_it_does_not_hold(torn):
    torn.commit(1, "other-4", other=b"four")
    oracle = torn.oracle()
    assert oracle.look() == []
    assert figures(oracle.claimed(3, "somebody")) == ["claimed"]


def test_what_a_torn_save_has_overwritten_need_not_be_committed(torn):
    torn.loaded = ValueError("torn")
    torn.commit(1, "last-4", last=b"fo", doubts=("unproven",))
    oracle = torn.oracle()
    assert oracle.look() == []
    assert oracle.torn == 1
    assert oracle.claimed(3, "somebody") == []


def test_what_a_torn_save_has_written_as_an_earlier_pod_did_is_overwritten(world):
    """Each pod that begins anew writes the same steps: the bytes alone do not show whose they are."""
    world.save(2, a=b"two", b=b"TWO")
    world.save(3, a=b"three", b=b"THREE")
    world.note("resumed", None)
    world.save(2, a=b"two", b=b"TWO")
    world.note("begin", 3)
    world.note("dies", 3)
    world.loaded = ValueError("of two saves")
    world.commit(1, "x-3", a=b"three", b=b"TWO", doubts=("unproven",))
    oracle = world.oracle()
    assert oracle.look() == []
    assert oracle.claimed(2, "somebody") == []


def test_a_torn_save_of_an_earlier_pod_is_no_excuse(world):
    world.loaded = ValueError("of two saves")
    world.commit(1, "x-3", a=b"one", b=b"THREE", doubts=("unproven",))
    world.save(1, a=b"one", b=b"ONE")
    world.save(3, a=b"three", b=b"THREE")
    world.note("resumed", None)
    world.save(2, a=b"two", b=b"TWO")
    world.note("begin", 3)
    oracle = world.oracle()
    assert oracle.look() == []
    assert figures(oracle.claimed(2, "somebody")) == ["claimed"]


def test_a_save_that_was_finished_is_no_excuse(torn):
    """Both existed, one after the other, and both had to become durable."""
    torn.note("resumed", 3)
    torn.save(4, last=b"four")
    torn.commit(1, "last-4", last=b"four")
    oracle = torn.oracle()
    assert oracle.look() == []
    torn.save(5, last=b"five")
    assert figures(oracle.claimed(4, "somebody")) == []
    assert figures(oracle.claimed(5, "somebody")) == ["claimed"]


@pytest.mark.parametrize(
    ("event", "step", "found"),
    [("resumed", 2, []), ("resumed", 1, ["lost"]), ("resumed", None, ["lost"]), ("broken", 2, ["wrong"])],
)
def test_the_newest_must_be_restored(good, event, step, found):
    logged = {"event": event, "step": step, "restored": "a", "why": None}
    assert figures(good.resumed(good.newest, logged)) == found


def test_what_an_older_pod_commits_meanwhile_may_be_restored(world, good):
    before = good.newest
    world.save(3, a=b"three")
    world.commit(3, "x-3", a=b"three")
    assert good.look() == []
    assert good.resumed(before, {"event": "resumed", "step": 3}) == []


def test_without_a_commit_training_starts_from_the_beginning(world):
    assert world.oracle().resumed(None, {"event": "resumed", "step": None}) == []


def test_a_part_of_a_save_may_be_committed_as_doubtful(world):
    world.commit(1, "x-1", a=b"one", doubts=("unproven",))
    oracle = world.oracle()
    assert oracle.look() == []
    assert (oracle.torn, oracle.commits, oracle.newest) == (1, 0, None)


def test_a_part_of_a_save_that_is_confirmed_is_wrong(world):
    world.commit(1, "x-1", a=b"one", doubts=("unproven",))
    oracle = world.oracle()
    assert oracle.look() == []
    world.confirm(1)
    assert figures(oracle.look()) == ["wrong"]
    assert oracle.look() == []


def test_a_doubtful_commit_whose_end_is_noted_later_is_whole(world):
    world.note("begin", 3)
    world.commit(1, "x-3", a=b"three", doubts=("unproven",))
    oracle = world.oracle()
    assert oracle.look() == []
    world.save(3, a=b"three")
    assert oracle.look() == []
    assert (oracle.torn, oracle.commits) == (0, 1)


def test_a_doubtful_commit_that_has_gone_is_lost(world):
    world.commit(1, "x-1", a=b"one", doubts=("unproven",))
    oracle = world.oracle()
    oracle.look()
    obstore.delete(world.store, world.name(1))
    assert figures(oracle.look()) == ["lost"]


@pytest.fixture
def doubtful(world, good):
    """A whole third commit, which nothing proves."""
    world.save(3, a=b"three")
    world.commit(3, "x-3", a=b"three", doubts=("unproven",))
    assert good.look() == []
    return good


def test_a_doubtful_commit_must_not_be_restored(doubtful):
    assert doubtful.newest.step == 2
    assert doubtful.resumed(doubtful.newest, {"event": "resumed", "step": 2}) == []
    assert doubtful.passed_over(2) == doubtful.unproven == 1
    assert figures(doubtful.resumed(doubtful.newest, {"event": "resumed", "step": 3})) == ["lost"]
    assert figures(doubtful.resumed(None, {"event": "resumed", "step": 3})) == ["wrong"]


def test_a_confirmed_commit_must_be_restored(world, doubtful):
    world.confirm(3)
    assert doubtful.look() == []
    assert doubtful.passed_over(2) == 0
    assert doubtful.resumed(doubtful.newest, {"event": "resumed", "step": 3}) == []


def test_a_doubtful_commit_is_durable_and_not_sure(doubtful):
    assert doubtful.claimed(3, "somebody") == []
    assert figures(doubtful.claimed(3, "somebody", sure=True)) == ["claimed"]

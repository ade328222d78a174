from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.cache.peers.shares import (
    MAX_PARTS,
    MIN_BYTES,
    Claim,
    PeerView,
    Take,
    first_of,
    next_step,
    owner,
    step_bytes,
)
from podferry.contract.file_part import FilePart
from podferry.contract.manifest import Entry

PARTS = [FilePart(Entry(f"f{n}", n, "t"), 0, n) for n in range(60)]
LARGE = [FilePart(Entry("large", 39, "t"), start, min(4, 39 - start)) for start in range(0, 39, 4)]
EVERYTHING = 1 << 40


def step(missing, peers, me="me", digest="d", max_bytes=EVERYTHING):
    return next_step(missing, me, digest, peers, max_bytes)


def test_alone_it_fetches_everything():
    assert step(PARTS, []) == Claim(tuple(PARTS))


def test_holders_have_disjoint_shares_that_cover_everything():
    names = ["a", "b", "c"]
    shares = [
        step(PARTS, [PeerView(other, "d") for other in names if other != name], name).parts for name in names
    ]
    assert Counter(part for share in shares for part in share) == Counter(PARTS)
    assert all(len(share) > 10 for share in shares)


def test_the_parts_of_one_large_file_have_several_owners():
    shares = [step(LARGE, [PeerView(other, "d")], name).parts for name, other in ("ab", "ba")]
    assert all(shares)
    assert Counter(part for share in shares for part in share) == Counter(LARGE)


def test_a_peer_with_another_manifest_owns_nothing():
    assert step(PARTS, [PeerView("a", "other"), PeerView("b")]) == Claim(tuple(PARTS))


def test_what_a_peer_has_claimed_is_waited_for_and_what_it_has_is_taken():
    peer = PeerView("a", "d", claimed=set(PARTS))
    assert step(PARTS, [peer]) is None
    peer.held[PARTS[3]] = 7
    assert step(PARTS, [peer]) == Take("a", (PARTS[3],))


def test_another_version_of_a_file_is_not_taken():
    old = FilePart(Entry("f1", 1, "old"), 0, 1)
    assert step([PARTS[1]], [PeerView("a", "other", held={old: 1}, claimed={old})]) == Claim((PARTS[1],))


def test_several_peers_share_the_work_of_serving():
    peers = [PeerView(name, "d", held=dict.fromkeys(PARTS, 1)) for name in "abc"]
    missing, taken = list(PARTS), Counter()
    while missing:
        found = step(missing, peers)
        taken[found.peer] += len(found.parts)
        missing = [part for part in missing if part not in found.parts]
    assert len(taken) == 3


def test_a_step_has_a_limit_but_at_least_one_file():
    assert first_of(PARTS, 10) == tuple(PARTS[:5])
    assert first_of(PARTS[50:], 10) == (PARTS[50],)
    assert first_of([], 10) == ()
    many = [FilePart(Entry(str(n), 0), 0, 0) for n in range(MAX_PARTS + 5)]
    assert len(first_of(many, 10)) == MAX_PARTS
    assert step_bytes(0) == MIN_BYTES
    assert step_bytes(MIN_BYTES * 8) == MIN_BYTES * 2


def test_a_holder_that_leaves_changes_nothing_for_the_others():
    before = {part: owner(part.key, "abc") for part in PARTS}
    assert all(owner(part.key, "ab") == who for part, who in before.items() if who != "c")


class Simulated:
    """Holders whose requests and steps happen in any order; each step is done at once, or later."""

    def __init__(self, count):
        self.names = [f"h{n}" for n in range(count)]
        self.missing = {name: [*PARTS[:8], *LARGE] for name in self.names}
        self.claims = {name: set() for name in self.names}
        self.held = {name: {} for name in self.names}
        self.views = {name: {} for name in self.names}
        self.fetching = dict.fromkeys(self.names)
        self.from_source = Counter()

    def ask(self, me, other):
        """`me` sees what `other` has; `other` knows of `me` from then on."""
        self.views[other].setdefault(me, PeerView(me, "d"))
        self.views[me][other] = PeerView(other, "d", set(self.claims[other]), dict(self.held[other]))

    def begin(self, me, max_bytes):
        if self.fetching[me] is None:
            found = step(self.missing[me], list(self.views[me].values()), me, max_bytes=max_bytes)
            if isinstance(found, Claim):
                self.claims[me] |= set(found.parts)
                self.from_source.update(found.parts)
            self.fetching[me] = found

    def end(self, me):
        found, self.fetching[me] = self.fetching[me], None
        for part in found.parts if found else ():
            self.missing[me].remove(part)
            self.held[me][part] = 1

    def die(self, me):
        """It ends in the middle, and the others notice; the parts that are lost with it."""
        lost = self.claims[me]
        self.names.remove(me)
        for views in (self.views.pop(me), *self.views.values()):
            views.pop(me, None)
        del self.missing[me]
        return lost

    def turn(self, max_bytes):
        """Each ends its step, asks all others, and begins the next one."""
        for name in self.names:
            self.end(name)
            for other in self.names:
                if other != name:
                    self.ask(name, other)
            self.begin(name, max_bytes)


def started(site, data, max_bytes):
    """Each asks all that answer, then begins; others do this and that meanwhile."""
    answering, running = [], []
    for name in data.draw(st.permutations(site.names)):
        for other in tuple(answering):
            site.ask(name, other)
            move(site, data, answering, running, max_bytes)
        answering.append(name)
        running.append(name)


def finished(site, max_bytes):
    for _ in range(50 * len(site.names)):
        site.turn(max_bytes)
        if not any(site.missing.values()):
            return
    raise AssertionError(site.missing)


@pytest.mark.parametrize("count", [2, 3, 6])
@given(data=st.data())
def test_in_any_order_each_part_is_read_once_from_the_source(count, data):
    site = Simulated(count)
    max_bytes = data.draw(st.sampled_from([10, 30, EVERYTHING]))
    started(site, data, max_bytes)
    finished(site, max_bytes)
    assert set(site.from_source.values()) == {1}


@pytest.mark.parametrize("count", [2, 4])
@given(data=st.data())
def test_of_a_holder_that_ends_only_its_own_parts_are_read_again(count, data):
    site = Simulated(count)
    max_bytes = data.draw(st.sampled_from([10, 30, EVERYTHING]))
    started(site, data, max_bytes)
    for _ in range(data.draw(st.integers(0, 3))):
        site.turn(max_bytes)
    lost = site.die(data.draw(st.sampled_from(site.names)))
    finished(site, max_bytes)
    assert all(times == 1 or (times == 2 and part in lost) for part, times in site.from_source.items())


def move(site, data, answering, running, max_bytes):
    """One holder that answers asks another one, or one that has asked all begins or ends a step."""
    match data.draw(st.sampled_from(["nothing", "ask", "begin", "end"])):
        case "ask":
            me, other = (data.draw(st.sampled_from(answering)) for _ in range(2))
            if me != other:
                site.ask(me, other)
        case "begin":
            site.begin(data.draw(st.sampled_from(running)), max_bytes)
        case "end":
            site.end(data.draw(st.sampled_from(running)))

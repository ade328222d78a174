from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.cache.peers.shares import (
    MAX_FILES,
    MIN_BYTES,
    Claim,
    PeerView,
    Take,
    first_of,
    next_step,
    owner,
    step_bytes,
)
from podferry.contract.manifest import Entry

ENTRIES = [Entry(f"f{n}", n, "t") for n in range(60)]
EVERYTHING = 1 << 40


def step(missing, peers, me="me", digest="d", max_bytes=EVERYTHING):
    return next_step(missing, me, digest, peers, max_bytes)


def test_alone_it_fetches_everything():
    assert step(ENTRIES, []) == Claim(tuple(ENTRIES))


def test_holders_have_disjoint_shares_that_cover_everything():
    names = ["a", "b", "c"]
    shares = [
        step(ENTRIES, [PeerView(other, "d") for other in names if other != name], name).entries
        for name in names
    ]
    assert sorted(entry for share in shares for entry in share) == sorted(ENTRIES)
    assert all(len(share) > 10 for share in shares)


def test_a_peer_with_another_manifest_owns_nothing():
    assert step(ENTRIES, [PeerView("a", "other"), PeerView("b")]) == Claim(tuple(ENTRIES))


def test_what_a_peer_has_claimed_is_waited_for_and_what_it_has_is_taken():
    peer = PeerView("a", "d", claimed=set(ENTRIES))
    assert step(ENTRIES, [peer]) is None
    peer.held[ENTRIES[3]] = 7
    assert step(ENTRIES, [peer]) == Take("a", (ENTRIES[3],))


def test_another_version_of_a_file_is_not_taken():
    old = Entry("f1", 1, "old")
    assert step([ENTRIES[1]], [PeerView("a", "other", held={old: 1}, claimed={old})]) == Claim((ENTRIES[1],))


def test_several_peers_share_the_work_of_serving():
    peers = [PeerView(name, "d", held=dict.fromkeys(ENTRIES, 1)) for name in "abc"]
    missing, taken = list(ENTRIES), Counter()
    while missing:
        found = step(missing, peers)
        taken[found.peer] += len(found.entries)
        missing = [entry for entry in missing if entry not in found.entries]
    assert len(taken) == 3


def test_a_step_has_a_limit_but_at_least_one_file():
    assert first_of(ENTRIES, 10) == tuple(ENTRIES[:5])
    assert first_of(ENTRIES[50:], 10) == (ENTRIES[50],)
    assert first_of([], 10) == ()
    many = [Entry(str(n), 0) for n in range(MAX_FILES + 5)]
    assert len(first_of(many, 10)) == MAX_FILES
    assert step_bytes(0) == MIN_BYTES
    assert step_bytes(MIN_BYTES * 8) == MIN_BYTES * 2


def test_a_holder_that_leaves_changes_nothing_for_the_others():
    before = {entry: owner(entry.name, "abc") for entry in ENTRIES}
    assert all(owner(entry.name, "ab") == who for entry, who in before.items() if who != "c")


class Simulated:
    """Holders whose requests and steps happen in any order; each step is done at once, or later."""

    def __init__(self, count):
        self.names = [f"h{n}" for n in range(count)]
        self.missing = {name: list(ENTRIES[:12]) for name in self.names}
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
                self.claims[me] |= set(found.entries)
                self.from_source.update(found.entries)
            self.fetching[me] = found

    def end(self, me):
        found, self.fetching[me] = self.fetching[me], None
        for entry in found.entries if found else ():
            self.missing[me].remove(entry)
            self.held[me][entry] = 1


@pytest.mark.parametrize("count", [2, 3, 6])
@given(data=st.data())
def test_in_any_order_each_file_is_read_once_from_the_source(count, data):
    site = Simulated(count)
    max_bytes = data.draw(st.sampled_from([10, 30, EVERYTHING]))
    answering, running = [], []
    for name in data.draw(st.permutations(site.names)):  # it asks all that answer, then begins
        for other in tuple(answering):
            site.ask(name, other)
            move(site, data, answering, running, max_bytes)
        answering.append(name)
        running.append(name)
    for _ in range(50 * count):
        for name in site.names:
            site.end(name)
            for other in site.names:
                if other != name:
                    site.ask(name, other)
            site.begin(name, max_bytes)
        if not any(site.missing.values()):
            break
    assert not any(site.missing.values())
    assert set(site.from_source.values()) == {1}


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

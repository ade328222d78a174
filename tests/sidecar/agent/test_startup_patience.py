import math

from podferry.sidecar.agent.startup_patience import StartupPatience


def test_no_attempt_starts_that_would_end_too_late():
    patience = StartupPatience(40.0, now=100.0)
    patience.attempt(100.0)
    assert patience.has_time(115.0, answered=False)
    patience.attempt(116.0)
    assert not patience.has_time(131.0, answered=False), "another one would end after 146"


def test_after_a_long_listing_the_time_counts_from_its_failure():
    patience = StartupPatience(40.0, now=100.0)
    patience.attempt(100.0)
    assert patience.has_time(300.0, answered=True)
    patience.attempt(335.0)
    assert patience.has_time(336.0, answered=True)
    patience.attempt(340.0)
    assert not patience.has_time(341.0, answered=True)


def test_a_store_that_always_breaks_off_is_not_asked_for_ever():
    patience = StartupPatience(40.0, now=0.0)
    ended = []
    for start in (0.0, 10.0, 20.0, 32.0):
        patience.attempt(start)
        ended.append(patience.has_time(start + 9.0, answered=True))
    assert ended == [True, True, True, False]


def test_without_a_limit_there_is_always_time():
    assert StartupPatience(math.inf, now=0.0).has_time(1e9, answered=False)

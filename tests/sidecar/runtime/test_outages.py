from podferry.contract.errors import Unavailable
from podferry.sidecar.runtime.outages import GAP_SECONDS, MAX_CAUSES, REMINDER_SECONDS, Outages
from tests.support.manual_clock import Clock


def failure(name, measured="connection refused"):
    return Unavailable.of(f"the store does not respond for {name}", measured)


def test_an_outage_is_news_once_whatever_it_interrupts():
    clock = Clock()
    outages = Outages(clock)
    assert outages.is_news(failure("a"))
    assert not outages.is_news(failure("a"))
    assert not outages.is_news(failure("b"))
    assert outages.is_news(failure("b", "HTTP 503"))


def test_the_next_outage_is_news_again():
    clock = Clock()
    outages = Outages(clock)
    assert outages.is_news(failure("a"))
    clock.now += GAP_SECONDS + 1
    assert outages.is_news(failure("a"))


def test_a_long_outage_is_reported_again():
    clock = Clock()
    outages = Outages(clock)
    news = []
    for _ in range(int(REMINDER_SECONDS / 30) + 1):
        news.append(outages.is_news(failure("a")))
        clock.now += 30
    news.append(outages.is_news(failure("a")))
    assert (news[0], news[-1], sum(news)) == (True, True, 2)


def test_other_errors_are_different_by_what_they_are():
    outages = Outages()
    assert outages.is_news(OSError("one"))
    assert outages.is_news(OSError("two"))
    assert not outages.is_news(OSError("one"))
    assert outages.is_news(Unavailable())


def test_causes_without_end_take_no_memory():
    outages = Outages(Clock())
    assert outages.is_news(failure("a"))
    for number in range(MAX_CAUSES * 3):
        outages.is_news(failure("b", f"request {number}"))
        assert not outages.is_news(failure("a"))
    assert len(outages._seen) == MAX_CAUSES

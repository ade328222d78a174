import msgspec
import pytest

from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained, publish, read_event

EVENTS = [
    Opened(
        at=1.0,
        pid=7,
        lineage="one",
        stage="/dev/shm/dataset",
        files=3,
        bytes=30,
        kept=1,
        prefetch=0.5,
        restored="epoch-02",
        restore=0.1,
        epoch=2,
    ),
    Began(at=1.0, epoch=3),
    Trained(at=2.0, epoch=3, loss=0.25),
    Saved(at=2.0, name="epoch-03", blocked=0.01),
    Left(at=3.0, blocked=0.5, accuracy=0.9),
]


@pytest.mark.parametrize("event", EVENTS, ids=lambda event: type(event).__name__)
def test_what_is_published_is_read_back(event, capsys):
    publish(event)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert read_event(b"    " + out.encode()) == event


def test_other_text_is_no_event():
    assert read_event(b"Killed\n") is None
    assert read_event(b'{"event": "gate open"}\n') is None


def test_a_malformed_event_is_an_error():
    with pytest.raises(msgspec.ValidationError):
        read_event(b'{"digits":"began"}\n')

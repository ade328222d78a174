import pytest

from demo.flow import StepBegan, StepEnded, parse_line
from podferry.pipelines.digits_events import Began, Left, Opened, Saved, Trained


@pytest.mark.parametrize(
    ("line", "event"),
    [
        (b"02:03:05.587 - INFO - Executing task \x1b[96m'train'\x1b[0m\n", StepBegan("train")),
        (
            b"02:03:05 - INFO - Task \x1b[96m'verify'\x1b[0m finished with status \x1b[92mSUCCESS\x1b[0m\n",
            StepEnded("verify", succeeded=True),
        ),
        (
            b"02:03:05 - ERROR - Task \x1b[96m'train'\x1b[0m finished with status \x1b[91mFAILURE\x1b[0m\n",
            StepEnded("train", succeeded=False),
        ),
        (b'    {"digits":"began","epoch":4,"at":1.5}\n', Began(at=1.5, epoch=4)),
        (b'{"digits":"trained","epoch":4,"loss":0.25,"at":1.5}\n', Trained(at=1.5, epoch=4, loss=0.25)),
    ],
)
def test_the_event_of_a_line(line, event):
    assert parse_line(line) == event


@pytest.mark.parametrize(
    "line",
    [
        b"\n",
        b"Killed\n",
        b"    Pipeline 'digits' finished with status FAILURE. Inner task failed: 'train'.\n",
        b'{"name": "epoch-01", "event": "checkpoint durable"}\n',
    ],
)
def test_other_lines_are_no_events(line):
    assert parse_line(line) is None


def test_an_attempt_records_its_events(story):
    first, second = story.attempts
    assert [span.name for span in first.epochs] == ["1", "2", "3", "4", "5"]
    assert first.epochs[-1].ended is None
    assert isinstance(first.opened, Opened)
    assert first.step("train").succeeded is False
    assert first.step("verify-checkpoint") is None
    assert first.blocked == pytest.approx(4 * 0.25)
    assert second.blocked == pytest.approx(4 * 0.25 + 1.5)
    assert isinstance(second.left, Left)
    assert all(isinstance(saved, Saved) for saved in second.saved)

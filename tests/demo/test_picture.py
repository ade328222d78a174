import itertools

import pytest

from demo.picture import LANES, LEFT, RIGHT, WIDTH, picture, uploads


def test_every_bar_is_in_its_row_and_on_the_axis(story):
    drawn = picture(story)
    assert [lane.name for lane in drawn.lanes] == list(LANES)
    for bar in drawn.bars:
        assert bar.x >= LEFT
        assert bar.x + bar.width <= WIDTH - RIGHT + 2
        assert any(
            lane.y <= bar.y and bar.y + bar.height <= lane.y + lane.height + 0.01 for lane in drawn.lanes
        )


def test_what_is_drawn(story):
    drawn = picture(story)
    kinds = [bar.kind.partition(" ")[0] for bar in drawn.bars]
    assert kinds.count("epoch") == 10, "that which was killed has a part in which it was stopped"
    assert kinds.count("checkpoint") == 8
    assert kinds.count("prefetch") == 2
    assert kinds.count("restore") == 1
    assert [run.kill is not None for run in drawn.runs] == [True, False]
    held = [bar for bar in drawn.bars if bar.kind == "epoch held"]
    assert len(held) == 1
    assert held[0].x + held[0].width == pytest.approx(drawn.runs[0].kill, abs=0.1)
    assert any(label.text == "SIGKILL" for label in drawn.labels)


def test_time_runs_to_the_right(story):
    drawn = picture(story)
    assert [tick.x for tick in drawn.ticks] == sorted({tick.x for tick in drawn.ticks})
    first, second = drawn.runs
    assert first.x < first.kill < first.x + first.width <= second.x


def test_lines_that_overlap_in_time_are_in_different_rows(story):
    attempt = story.attempts[0]
    durable = {saved.name: saved.at + 25 for saved in attempt.saved}
    lines = uploads(attempt, durable)
    assert len(lines) == 4
    for one, other in itertools.combinations(lines, 2):
        overlap = one.written < other.durable and other.written < one.durable
        assert not (overlap and one.row == other.row)
    assert max(line.row for line in lines) == 2


def test_what_never_became_durable_has_no_line(story):
    assert uploads(story.attempts[0], {}) == []

from dataclasses import replace

import msgspec
import pytest

from demo.__main__ import IMITATED
from demo.pages import render, title, waits
from demo.results import Report, broken_promises, report
from demo.screen import rows
from tests.support.isolation import isolate


def test_the_values_of_a_story(story):
    assert report(story) == Report(
        files=100,
        bytes=5000,
        prefetch_s=2.0,
        second_prefetch_s=0.0,
        download_first_s=4.0,
        remote_epoch_s=3.0,
        mb_per_s=0.003,
        epochs=8,
        accuracy=0.95,
        checkpoints_durable=8,
        resumed_from="epoch-04",
        killed_at=5,
        blocked_s=3.5,
    )


def test_the_waits_of_both_runs(story):
    found = report(story)
    assert found.waits == (2.0, 8.0, 24.0), "once; before each run; in each of 8 epochs"
    assert [(wait.name, wait.share) for wait in waits(found)] == [
        ("podferry", 2 / 24),
        ("download first", 8 / 24),
        ("remote reading", 1.0),
    ]


def test_what_was_computed_is_called_so(story):
    found = report(story)
    before, within = "2 downloads of 4.0 s with boto3, before each run", "8 epochs of 3.0 s with boto3"
    lines = {name: (value, note) for name, value, note in rows(found)}
    assert lines["download first"] == ("8.0 s", f"computed: {before}")
    assert lines["remote reading"] == ("24.0 s", f"computed: {within}")
    assert [wait.note for wait in waits(found)[1:]] == [f"computed: {before}", f"computed: {within}"]


def test_the_title_says_what_happened(story):
    found = report(story)
    assert title(found) == "Training was killed in epoch 5 and resumed from epoch-04"
    assert f"<title>podferry demo: {title(found)}</title>" in render(story, found, IMITATED)
    story.attempts[1].opened = None
    assert title(report(story)) == "Training was killed in epoch 5"
    story.attempts[0].killed = None
    assert "was to be killed" in title(report(story))


def test_a_good_story_breaks_no_promise(story):
    assert broken_promises(story, report(story)) == []


def never_resumed(story, make_opened, make_commit):
    story.attempts[1].opened = make_opened(1.0)
    return story


def resumed_from_an_older_one(story, make_opened, make_commit):
    story.attempts[1].opened = make_opened(1.0, "epoch-03", 3)
    return story


def resumed_at_another_epoch(story, make_opened, make_commit):
    story.attempts[1].opened = make_opened(1.0, "epoch-04", 3)
    return story


def staged_again(story, make_opened, make_commit):
    opened = story.attempts[1].opened
    story.attempts[1].opened = msgspec.structs.replace(opened, kept=98)
    return story


def never_killed(story, make_opened, make_commit):
    story.attempts[0].killed = None
    return story


def killed_too_early(story, make_opened, make_commit):
    story.attempts[0].killed = replace(story.attempts[0].killed, durable=2)
    return story


def first_run_succeeded(story, make_opened, make_commit):
    return replace(story, codes=(0, 0))


def second_run_failed(story, make_opened, make_commit):
    return replace(story, codes=(1, 1))


def not_drained(story, make_opened, make_commit):
    return replace(story, first=story.first[:3])


def files_missing(story, make_opened, make_commit):
    story.attempts[0].opened = make_opened(1.0, files=99)
    return story


def never_began(story, make_opened, make_commit):
    story.attempts[0].opened = None
    return story


def never_left(story, make_opened, make_commit):
    story.attempts[1].left = None
    return story


def verify_red(story, make_opened, make_commit):
    story.attempts[1].step("verify-checkpoint").succeeded = False
    return story


def verify_not_reached(story, make_opened, make_commit):
    story.attempts[1].steps.pop()
    return story


def a_gap(story, make_opened, make_commit):
    return replace(story, commits=story.commits[:4] + story.commits[5:])


def two_lineages(story, make_opened, make_commit):
    return replace(story, commits=[*story.commits[:7], make_commit(8, "another")])


def too_inaccurate(story, make_opened, make_commit):
    story.attempts[1].left = msgspec.structs.replace(story.attempts[1].left, accuracy=0.84)
    return story


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (never_resumed, "resumed from None; the newest durable was epoch-04"),
        (resumed_from_an_older_one, "resumed from epoch-03"),
        (resumed_at_another_epoch, "began after epoch 3, not 4"),
        (staged_again, "found 98 of 100 files in memory"),
        (never_killed, "epoch 5 was never reached"),
        (killed_too_early, "Only 2 checkpoints"),
        (first_run_succeeded, "The first run succeeded"),
        (second_run_failed, "The second run failed"),
        (not_drained, "not durable after it: epoch-04"),
        (files_missing, "99 files were prefetched"),
        (never_began, "Training never began in the first run"),
        (never_left, "did not come to its end"),
        (verify_red, "verify step is not green"),
        (verify_not_reached, "verify step is not green"),
        (a_gap, "Not every epoch"),
        (two_lineages, "different lineages"),
        (too_inaccurate, "The accuracy is 0.840"),
    ],
)
def test_each_broken_promise_is_reported(story, make_opened, make_commit, change, sentence):
    changed = change(story, make_opened, make_commit)
    found = report(changed)
    assert any(sentence in event for event in broken_promises(changed, found))
    page = render(changed, found, IMITATED)
    assert "not as promised" in page
    assert "(not as promised)</title>" in page
    assert "all as promised" not in page


def test_the_environment_leads_nowhere_else():
    environ = {
        "AWS_ENDPOINT_URL_S3": "https://s3.example.com",
        "AWS_PROFILE": "mine",
        "HTTPS_PROXY": "http://proxy",
        "all_proxy": "http://proxy",
        "PODFERRY_AGENT": "http://agent",
        "HOME": "/home/me",
    }
    isolate(environ)
    assert environ == {"HOME": "/home/me", "AWS_EC2_METADATA_DISABLED": "true"}

"""The complete demo, once, with fewer images."""

import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
FILES, EPOCHS = 500, 10
KEYS = {
    "files",
    "bytes",
    "prefetch_s",
    "second_prefetch_s",
    "download_first_s",
    "remote_epoch_s",
    "mb_per_s",
    "epochs",
    "accuracy",
    "checkpoints_durable",
    "resumed_from",
    "killed_at",
    "blocked_s",
}
pytestmark = pytest.mark.timeout(600)


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    build = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "demo", "--build", str(build)]
    command += ["--images", str(FILES), "--epochs", str(EPOCHS)]
    # A proxy and an account that must not matter: nothing listens there.
    strange = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, **strange},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    return build, done


@pytest.fixture
def report(demo):
    build, done = demo
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}\n{logs(build)}"
    return json.loads((build / "report.json").read_text())


def logs(build):
    return "\n".join(log.read_text() for log in sorted(build.glob("*.log")))


def test_the_report_holds_just_what_is_promised(report):
    assert set(report) == KEYS
    assert report["files"] == FILES
    assert report["bytes"] > FILES * 50
    assert report["prefetch_s"] > 0
    speed = report["bytes"] / 1e6 / report["prefetch_s"]
    assert report["mb_per_s"] == pytest.approx(speed, rel=0.05, abs=5e-4)
    assert report["epochs"] == EPOCHS
    assert 0.85 <= report["accuracy"] <= 1


def test_training_was_killed_in_the_middle_and_resumed_from_a_committed_checkpoint(demo, report):
    build, _ = demo
    assert report["killed_at"] == EPOCHS // 2
    assert report["checkpoints_durable"] == EPOCHS
    durable = re.findall(r'"name": "(epoch-\d+)"[^\n]*"checkpoint durable"', first_log(build))
    assert report["resumed_from"] == durable[-1]
    assert len(durable) >= 3
    assert '"digits":"left"' not in first_log(build)
    assert "Killed" in first_log(build)


def first_log(build):
    return (build / "attempt-1.log").read_text()


def test_blocked_time_is_the_sum_of_the_saves(demo, report):
    build, _ = demo
    second = (build / "attempt-2.log").read_text()
    written = [
        float(text) for text in re.findall(r'"digits":"saved".*?"blocked":([\d.e-]+)', first_log(build))
    ]
    written += [
        float(text) for text in re.findall(r'"digits":"(?:saved|left)".*?"blocked":([\d.e-]+)', second)
    ]
    assert report["blocked_s"] == pytest.approx(sum(written), abs=0.001)


def test_the_page_holds_the_picture_and_needs_nothing_else(demo, report):
    build, _ = demo
    page = (build / "report.html").read_text()
    seen = Seen()
    seen.feed(page)
    assert seen.tags["svg"] == 1
    assert seen.tags["rect"] > EPOCHS * 2
    assert report["resumed_from"] in page
    assert "a small S3 server over files" in page
    assert "CPU" in page
    assert not re.search(r"""(src|href)=|url\(|@import|https?://""", page)


class Seen(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags = {}

    def handle_starttag(self, tag, attrs):
        self.tags[tag] = self.tags.get(tag, 0) + 1


def test_it_prints_each_step(demo, report):
    _, done = demo
    for number in range(1, 7):
        assert re.search(rf"^{number}  ", done.stdout, re.MULTILINE)
    assert f"resuming from {report['resumed_from']}" in done.stdout
    assert "Imitated: the object store is a small S3 server" in done.stdout


def test_no_staging_directory_is_left(demo, report):
    """The demo removes what its runs shared."""
    build, _ = demo
    staging = [Path(found) for found in re.findall(r'"stage":"([^"]+)"', logs(build))]
    assert len(staging) == 2
    assert len(set(staging)) == 1, "both runs share it"
    assert not any(path.exists() or path.parent.exists() for path in staging)


@pytest.mark.parametrize("words", [["--epochs", "7"], ["--images", "399"]])
def test_a_plan_that_cannot_be_kept_is_refused(tmp_path, words):
    command = [sys.executable, "-m", "demo", "--build", str(tmp_path), *words]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert f"{' '.join(words)}: " in done.stderr
    assert not list(tmp_path.iterdir())

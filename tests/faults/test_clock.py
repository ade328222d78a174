import subprocess
import sys
import time
from pathlib import Path

from faults.clock import offset
from tests.support.patience import PATIENCE

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys, time
from datetime import UTC, datetime
from faults.clock import jump_with

jump_with(sys.argv[1])
import podferry.sidecar.checkpoint.pipeline.checkpoint_job as asks
from podferry.storage.s3.sigv4 import S3Credentials, SigV4Signer
signed = SigV4Signer(S3Credentials("key", "secret", None), "region", "host").sign("GET", "/")
signed_at = datetime.strptime(signed["x-amz-date"], "%Y%m%dT%H%M%S%z").timestamp()
dated = asks.datetime.now(UTC).timestamp()
print(signed_at, time.time(), dated, time.monotonic(), datetime.now(UTC).timestamp())
"""


def test_without_a_file_the_clock_is_right(tmp_path):
    assert offset(tmp_path / "none") == 0


def test_a_file_that_is_being_written_does_nothing(tmp_path):
    (tmp_path / "clock").write_text("-")
    assert offset(tmp_path / "clock") == 0


def test_the_agents_clocks_jump_and_no_others(tmp_path):
    (tmp_path / "clock").write_text("-86400")
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "clock")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True)
    signed, now, dated, monotonic, others = map(float, done.stdout.split())
    assert abs(signed - time.time()) < 3600  # a store rejects requests that are signed with a wrong time
    assert abs(now - (time.time() - 86400)) < 3600
    assert abs(dated - now) < 3600
    assert abs(others - now - 86400) < 3600
    assert abs(monotonic - time.monotonic()) < 3600

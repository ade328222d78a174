import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

from podferry.storage.obstore.thread_exit import any_busy, wait_for_threads

STEP = """
import sys
from podferry.components.checkpoints.verify_checkpoint.runner import VerifyRequest, verify
from podferry.contract.errors import Unavailable
try:
    verify(VerifyRequest("s3://b/x", any_run=True), endpoint="http://127.0.0.1:1")
except Unavailable:
    sys.exit(7)
"""


def test_a_step_whose_store_refuses_ends_with_its_exit_code():
    """One in three ended by SIGABRT."""
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}

    def end(_):
        command = [sys.executable, "-c", STEP]
        return subprocess.run(command, env={**os.environ, **keys}, capture_output=True, check=False)

    with ThreadPoolExecutor(2) as threads:
        ends = list(threads.map(end, range(8)))
    assert [done.returncode for done in ends] == [7] * 8, ends[-1].stderr


def test_it_returns_once_threads_are_idle_twice_in_a_row():
    states = iter([True, False, True, False, False, True])
    wait_for_threads(lambda: next(states))
    assert next(states) is True


def test_a_thread_that_works_on_does_not_delay_the_end_for_ever():
    asked = []
    wait_for_threads(lambda: asked.append(1) or True)
    assert asked


def test_only_threads_of_the_runtime_count():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            pass

    worker = threading.Thread(target=work)
    worker.start()
    assert not any_busy()
    stop.set()
    worker.join()

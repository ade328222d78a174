"""Starts an agent as a child process, for `podferry run` and `ferry`, and starts another one if it is killed.

Pods have it as a sidecar instead. The child is a separate process so that it outlives a trainer that is
killed, and makes the complete checkpoints durable. Locks in the run's directory show it who lives.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import msgspec

from podferry.contract.errors import Problem
from podferry.contract.exit_codes import EXIT_USAGE
from podferry.contract.http_api import SPEC_VARIABLE
from podferry.contract.spec_json import encode_spec
from podferry.sidecar.config.agent_config import ProgramRun
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.control.http_client import AgentClient
from podferry.sidecar.launch.launch_options import DEFAULTS, GRACE_SECONDS, LaunchOptions, agent_flags
from podferry.sidecar.launch.leftover_contents import all_paths
from podferry.sidecar.launch.leftovers import left_by, not_durable_of, remove_empty_records, supersede
from podferry.sidecar.launch.local_directories import LocalRun, create_run, local_directories
from podferry.sidecar.launch.local_run import describe_run, other_spellings
from podferry.sidecar.launch.local_spec import keyword_of, local_spec, option_of
from podferry.sidecar.launch.mount_view import view_of
from podferry.sidecar.launch.run_record import RunRecord, text_or_none, write_record
from podferry.sidecar.launch.secret_dirs import secret_dirs, split_settings
from podferry.sidecar.launch.start_notes import start_notes
from podferry.sidecar.runtime.file_lock import acquire, is_locked, release
from podferry.sidecar.runtime.messages import print_message

RESTART_PAUSES = (0.1, 0.5, 1.0, 2.0, 5.0)
"""Seconds before each restart of an agent that ended by itself; after the last one it is given up."""
POLL_SECONDS = 0.05
"""Between two looks whether a worker without supervisor still drains."""
HEALTHY_SECONDS = 60.0
"""An agent that lived this long was healthy: the pauses begin again."""


class LocalAgent:
    """An agent that this process has started, and starts again until `stop`.

    Attributes:
        process: Its supervisor.
        url: Of its API.
        client: Of its API.
        run: Its directories.
        detached: Nobody waits for its end.
        notes: What the user should know before training starts.
    """

    def __init__(
        self, start: Callable[[], subprocess.Popen[bytes]], listener: socket.socket, run: LocalRun, lock: int
    ) -> None:
        self._start, self._listener, self._lock = start, listener, lock
        self.run = run
        self.notes: tuple[Problem, ...] = ()
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self.client = AgentClient(self.url)
        self.detached = self._stopping = False
        self.process = start()
        self._watch = threading.Thread(target=self._keep_alive, name="podferry-agent", daemon=True)
        self._watch.start()

    def lock_for_trainer(self) -> int:
        """A descriptor that the trainer must inherit: nothing is removed while it is open. Close it here."""
        return acquire(self.run.directory.trainer_lock, inheritable=True)

    def detach(self) -> None:
        """Do not wait for it: it drains within its grace period, and exits."""
        self.detached = True

    def stop(self, timeout: float = GRACE_SECONDS + 15.0) -> None:
        """Let it drain and exit, and wait unless detached; kill it after `timeout` seconds."""
        self._stopping = True
        self.run.directory.mark_ended()
        self.process.terminate()
        if not self.detached:
            deadline = time.monotonic() + timeout
            self._watch.join(timeout)
            if self._watch.is_alive():
                self.detached = True  # no other one
                self.process.kill()
            # If its supervisor was given up, a worker may still drain.
            while is_locked(self.run.directory.agent_lock) and time.monotonic() < deadline:
                time.sleep(POLL_SECONDS)
        release(self._lock)

    def left(self) -> Problem | None:
        """What is not durable after `stop`, and how to upload it; None if nothing of value is left."""
        return left_by(self.run.directory)

    def not_durable(self) -> tuple[str, ...]:
        """Names of checkpoints, and `outputs`, that may not be durable, without asking the agent."""
        return not_durable_of(self.run.directory)

    def _keep_alive(self) -> None:
        pauses = iter(RESTART_PAUSES)
        while True:
            started_at = time.monotonic()
            code = self.process.wait()
            if code in {0, EXIT_USAGE} or self.detached:
                break
            if time.monotonic() - started_at > HEALTHY_SECONDS:
                pauses = iter(RESTART_PAUSES)
            pause = next(pauses, None)
            if pause is None:
                self._report(f"the agent {_ended(code)} repeatedly; it is given up")
                break
            if not (self._stopping and code == -signal.SIGTERM):  # it had only just begun
                self._report(f"the agent {_ended(code)}; starting another one, which continues")
            time.sleep(pause)
            self.process = self._start()
        self._listener.close()  # who still asks is refused at once

    @staticmethod
    def _report(text: str) -> None:
        print_message(f"podferry: {text}", "yellow")


def _ended(code: int) -> str:
    return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"


def launch(
    settings: Mapping[str, object], command: Sequence[str], options: LaunchOptions = DEFAULTS
) -> LocalAgent:
    """Start an agent for a command on this machine.

    Settings, command and errors as for `local_spec`, and the settings of `secret_dirs`.
    """
    run = create_run()
    lock = acquire(run.directory.path)
    try:
        secret_settings, settings = split_settings(settings)
        keywords = options.argv is not None
        spec = local_spec(settings, command, run.data, keywords=keywords)
        name_of = keyword_of if keywords else option_of
        program = _describe(command, options, named=settings.get("lineage") is not None)
        options = replace(options, secrets=secret_dirs(secret_settings, spec, name_of), program=program)
        directories = local_directories(spec, run)
        record = _record(run, command, encode_spec(spec).decode(), directories, options)
        notes = start_notes(spec, directories)
        supersede(record)
        remove_empty_records()
        write_record(run.directory.record, record)
        agent = start_agent(record.spec, directories, options, run, lock)
    except BaseException:  # including Ctrl-C: without an agent, nothing else removes the directory
        run.remove()
        release(lock)
        raise
    agent.notes = notes
    return agent


def _record(
    run: LocalRun, command: Sequence[str], spec: str, directories: Directories, options: LaunchOptions
) -> RunRecord:
    """What the run's directory records of it."""
    record = RunRecord(
        command=tuple(command),
        spec=spec,
        started_at=time.time(),
        data=str(run.data),
        checkpoints=text_or_none(directories.checkpoints),
        holds=text_or_none(directories.holds),
        outputs=text_or_none(directories.outputs),
        temporary=tuple(map(str, directories.temporary)),
        run_id=options.run_id,
        polling=options.polling,
        checkpoints_secret=options.secrets.checkpoints,
        outputs_secret=options.secrets.outputs,
        program=options.program,
    )
    return msgspec.structs.replace(record, view=view_of(all_paths(run.directory.path, record)))


def start_agent(
    spec: str, directories: Directories, options: LaunchOptions, run: LocalRun, lock: int
) -> LocalAgent:
    """Start the agent of a run whose directories exist; `lock` is the command's, and freed by `stop`."""
    listener = socket.create_server(("127.0.0.1", 0))
    flags = [*agent_flags(directories, options), "--listen-fd", str(listener.fileno())]

    def start() -> subprocess.Popen[bytes]:
        """A new supervisor, on the same listening socket."""
        return subprocess.Popen(
            [sys.executable, "-m", "podferry.cli.entry_point", "agent", *flags],
            stdin=subprocess.DEVNULL,
            env={**os.environ, SPEC_VARIABLE: spec},
            pass_fds=[listener.fileno()],
            start_new_session=True,
        )

    try:
        return LocalAgent(start, listener, run, lock)
    except BaseException:
        listener.close()
        raise


def _describe(command: Sequence[str], options: LaunchOptions, *, named: bool) -> ProgramRun:
    former = other_spellings(command) if options.argv is None else [options.argv]
    return describe_run(command, former, named=named, in_python=options.argv is not None)

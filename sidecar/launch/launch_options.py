"""How an agent is started as a child process: the options, and the flags that they become."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from podferry.sidecar.config.agent_config import ProgramRun, encode_program_run
from podferry.sidecar.config.directories import Directories
from podferry.sidecar.launch.secret_dirs import NO_SECRETS, SecretDirs
from podferry.sidecar.runtime.log_options import local_level

GRACE_SECONDS = 30.0
"""For the agent's drain after this process has ended."""


@dataclass(frozen=True, slots=True)
class LaunchOptions:
    """How to start an agent.

    Attributes:
        grace_seconds: For a drain.
        polling: Scan at intervals even if inotify works.
        run_id: KFP's run id; None outside KFP.
        log_level: Least important level to log; None: see `local_level`.
        log_format: "text" or "json"; None: see `default_format`.
        argv: `sys.argv` of a program that calls `ferry`; None for a command.
        program: What the agent records of it; `launch` fills it in.
        secrets: Where the credentials are; by default in the environment.
    """

    grace_seconds: float = GRACE_SECONDS
    polling: bool = False
    run_id: str | None = None
    log_level: str | None = None
    log_format: str | None = None
    argv: Sequence[str] | None = None
    program: ProgramRun | None = None
    secrets: SecretDirs = NO_SECRETS


DEFAULTS = LaunchOptions()


def agent_flags(directories: Directories, options: LaunchOptions) -> list[str]:
    """The flags of `podferry agent` for these directories and options, without its socket."""
    values = {
        "--run-dir": directories.run and directories.run.path,
        "--control-dir": directories.control,
        "--checkpoint-dir": directories.checkpoints,
        "--pins-dir": directories.holds,
        "--output-dir": directories.outputs,
        "--run-id": options.run_id,
        "--grace": options.grace_seconds,
        "--log-level": options.log_level or local_level(os.environ),
        "--log-format": options.log_format,
        "--program": options.program and encode_program_run(options.program),
    }
    flags = [text for flag, value in values.items() if value is not None for text in (flag, str(value))]
    by_dataset = {"--dataset-dir": directories.datasets, "--claim-dir": directories.ownership}
    for flag, paths in by_dataset.items():
        flags += [f"{flag}={name}={path}" if name else f"{flag}={path}" for name, path in paths.items()]
    flags += [text for path in directories.temporary for text in ("--temporary-dir", str(path))]
    flags += options.secrets.flags
    if options.polling:
        flags.append("--polling")
    return flags

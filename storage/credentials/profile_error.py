"""Why a profile of Amazon's shared files gives an S3 store no keys. Asked only once there are none."""

from __future__ import annotations

import os
import shlex
import signal
from collections.abc import Mapping

import msgspec

from podferry.contract.errors import CredentialsMissing, FerryError
from podferry.storage.credentials.aws_profile import Profile, read_profile
from podferry.storage.errors.translate import StoreLocation, store_error

S3_SCHEMES = ("s3", "s3a")
PROCESS = "credential_process"
UNSUPPORTED = (
    *("sso_session", "sso_start_url", "login_session"),
    *("source_profile", "credential_source", "web_identity_token_file"),
)
"""Settings by which Amazon's tools get keys for a profile that has none. Source: "Configuration and
credential file settings in the AWS CLI"."""
PROCESS_SECONDS = 20
NOT_FOUND = 127
"""The shell's exit code for a command that does not exist."""


class Keys(msgspec.Struct, rename="pascal"):
    """What a command has to print, among other things."""

    access_key_id: str
    secret_access_key: str


def no_credentials(location: StoreLocation, variables: Mapping[str, str], evidence: str = "") -> FerryError:
    """The error for a store without credentials, as `profile_error`; `evidence` is what was tried."""
    return profile_error(location, variables) or store_error("credentials", location, evidence=evidence)


def profile_error(location: StoreLocation, variables: Mapping[str, str]) -> FerryError | None:
    """The error for a store whose profile has no keys, or None if that is not why it has none. Blocks.

    Args:
        location: Of the store.
        variables: Its configuration; `AWS_PROFILE` names the profile.
    """
    if location.uri.scheme not in S3_SCHEMES:
        return None
    found = read_profile({**os.environ, "AWS_PROFILE": variables.get("AWS_PROFILE", "")})
    reason, remedy = _reason_and_remedy(found)
    what = f"the profile {found.name!r} has no keys for {location.uri}"
    return CredentialsMissing.of(what, f"{reason}; {location.address}", remedy) if reason else None


def _reason_and_remedy(profile: Profile) -> tuple[str, str]:
    """Why a profile has no keys; empty if it does not say how it would get some."""
    settings, command = profile.settings, profile.settings.get(PROCESS, "")
    if command and (failure := process_failure(command)):
        reason = f"its {PROCESS} fails: {command.split(maxsplit=1)[0]}: {failure}"
        return reason, f"Run the command of {profile.files[1]} in a shell, and correct it"
    used = next((name for name in (PROCESS, *UNSUPPORTED) if settings.get(name)), "")
    if not used:
        return "", ""
    shown = "" if used == PROCESS else f" = {settings[used][:100]}"  # it may have secrets
    export = f"aws configure export-credentials --profile {shlex.quote(profile.name)} --format env"
    return f"{used}{shown}, which podferry does not support", f'Export its keys: eval "$({export})"'


def process_failure(command: str) -> str:
    """Run the command of a profile, and say why it gives no keys; empty if it does. Its output is secret."""
    import subprocess  # noqa: PLC0415 - 5 ms, for those whose profile has a command

    command_line = ["/bin/sh", "-c", command]
    # In a group of its own: what the shell has started keeps the pipe open.
    process = subprocess.Popen(
        command_line,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        output = process.communicate(timeout=PROCESS_SECONDS)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"no end within {PROCESS_SECONDS} s"
    if process.returncode:
        return "no such command" if process.returncode == NOT_FOUND else f"exit code {process.returncode}"
    try:
        msgspec.json.decode(output, type=Keys)
    except ValueError:
        return "its output is no JSON with AccessKeyId and SecretAccessKey"
    return ""

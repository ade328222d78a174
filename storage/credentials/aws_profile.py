"""Profiles of Amazon's shared files, `~/.aws/credentials` and `~/.aws/config`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from podferry.contract.errors import InvalidSpec

DEFAULT = "default"
VARIABLES = {
    "aws_access_key_id": "AWS_ACCESS_KEY_ID",
    "aws_secret_access_key": "AWS_SECRET_ACCESS_KEY",
    "aws_session_token": "AWS_SESSION_TOKEN",
    "region": "AWS_DEFAULT_REGION",
    "endpoint_url": "AWS_ENDPOINT_URL",
    "ca_bundle": "AWS_CA_BUNDLE",
}
"""What a profile has, by the names of the environment."""


class Profile(msgspec.Struct, frozen=True):
    """A profile.

    Attributes:
        name: `default` unless `AWS_PROFILE` names another one.
        settings: Of both files; keys are among them.
        files: Where they were searched.
    """

    name: str
    settings: Mapping[str, str]
    files: tuple[Path, Path]

    def __repr__(self) -> str:
        return f"Profile(name={self.name!r}, settings: {', '.join(self.settings)})"


def read_profile(environ: Mapping[str, str]) -> Profile:
    """The profile of an environment; without settings if there is none.

    Raises:
        InvalidSpec: A file cannot be read.
    """
    home = Path(environ.get("HOME") or "/nonexistent") / ".aws"
    credentials_file = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    config_file = Path(environ.get("AWS_CONFIG_FILE") or home / "config")
    name = environ.get("AWS_PROFILE") or DEFAULT
    section = f"profile {name}" if name != DEFAULT else name
    settings = {**_section(config_file, section), **_section(credentials_file, name)}
    return Profile(name, settings, (credentials_file, config_file))


def profile_variables(environ: Mapping[str, str]) -> dict[str, str]:
    """What the profile of an environment has, by the names of variables.

    Raises:
        InvalidSpec: A file cannot be read, or `AWS_PROFILE` names a profile that is in none.
    """
    profile = read_profile(environ)
    if not profile.settings and environ.get("AWS_PROFILE"):
        measured = f"AWS_PROFILE={profile.name}; read {profile.files[0]} and {profile.files[1]}"
        remedy = "Correct AWS_PROFILE, or add the profile"
        raise InvalidSpec.of(f"there is no profile {profile.name!r}", measured, remedy)
    return {VARIABLES[key]: value for key, value in profile.settings.items() if key in VARIABLES}


def _section(file: Path, section: str) -> dict[str, str]:
    if not file.exists():
        return {}
    import configparser  # noqa: PLC0415 - 1.5 ms, for those who have the file

    parser = configparser.RawConfigParser(default_section="", strict=False)
    try:
        parser.read_string(file.read_text(encoding="utf-8"), source=str(file))
    except FileNotFoundError:  # removed meanwhile
        return {}
    except (OSError, UnicodeDecodeError, configparser.Error) as error:
        # The parser's message would print the line, which may hold a key.
        remedy = "Correct it, or unset AWS_PROFILE"
        raise InvalidSpec.of(f"the file {file} cannot be read", type(error).__name__, remedy) from None
    return dict(parser[section]) if parser.has_section(section) else {}

"""Credentials of a local run by direction: directories like mounted Secrets, with one file per credential.

They have the names of the annotations (`secret`, `dataset-secret`, …) with `-dir`: outside Kubernetes a
Secret has no name, but it can be mounted or written anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import msgspec

from podferry.contract.errors import InvalidSpec, Problem
from podferry.contract.spec import FerrySpec
from podferry.sidecar.config.local_path import parse_directory
from podferry.sidecar.launch.local_spec import option_of

SETTINGS = ("secret_dir", "dataset_secret_dir", "checkpoints_secret_dir", "outputs_secret_dir")
"""Options and keywords; that of the dataset may be a mapping by name."""


class SecretDirs(msgspec.Struct, frozen=True):
    """Absolute directories: by name of the dataset, and of the destinations; None for the environment."""

    datasets: Mapping[str, str] = {}
    checkpoints: str | None = None
    outputs: str | None = None

    @property
    def flags(self) -> Iterator[str]:
        """The options of `podferry agent`."""
        for name, path in self.datasets.items():
            yield f"--dataset-secret-dir={f'{name}=' if name else ''}{path}"
        if self.checkpoints is not None:
            yield f"--checkpoint-secret-dir={self.checkpoints}"
        if self.outputs is not None:
            yield f"--output-secret-dir={self.outputs}"


NO_SECRETS = SecretDirs()


def split_settings(settings: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    """Split the settings of a run into those of this module and all others.

    Raises:
        InvalidSpec: One of them names a Secret.
    """
    InvalidSpec.raise_any(
        Problem(
            f"{name} is the name of a Secret, which only pods can use",
            repr(settings[name]),
            f"Give {name}_dir, a directory with a file for each credential, such as a mounted Secret",
        )
        for name in settings
        if f"{name}_dir" in SETTINGS and settings[name] is not None
    )
    own = {name: settings[name] for name in SETTINGS if settings.get(name) is not None}
    return own, {name: value for name, value in settings.items() if name not in SETTINGS}


def secret_dirs(
    settings: Mapping[str, object], spec: FerrySpec, name_of: Callable[[str], str] = option_of
) -> SecretDirs:
    """The directories of a run; `secret_dir` is for the directions that have none of their own.

    `name_of` says what the user wrote, by the name of a setting and of the dataset, separated by a dot.

    Raises:
        InvalidSpec: A directory does not exist, or is for a dataset or destination that the run has not; all
            of them at once.
    """
    texts = {
        (setting, name): str(path)
        for setting, value in settings.items()
        for name, path in (value if isinstance(value, Mapping) else {"": value}).items()
    }
    InvalidSpec.raise_any(_problems(texts, spec, name_of))
    given = {place: parse_directory(text).absolute() for place, text in texts.items()}
    by_place = {place: str(path) for place, path in given.items()}
    common = by_place.get(("secret_dir", ""))
    datasets = {one.name: by_place.get(("dataset_secret_dir", one.name), common) for one in spec.datasets}
    return SecretDirs(
        {name: path for name, path in datasets.items() if path is not None},
        by_place.get(("checkpoints_secret_dir", ""), common) if spec.checkpoints else None,
        by_place.get(("outputs_secret_dir", ""), common) if spec.outputs else None,
    )


def _problems(
    given: Mapping[tuple[str, str], str], spec: FerrySpec, name_of: Callable[[str], str]
) -> Iterator[Problem]:
    datasets = {one.name for one in spec.datasets}
    directions = {
        "secret_dir": {""},
        "dataset_secret_dir": datasets,
        "checkpoints_secret_dir": {""} if spec.checkpoints else set[str](),
        "outputs_secret_dir": {""} if spec.outputs else set[str](),
    }
    for (setting, name), text in given.items():
        option = name_of(f"{setting.replace('_', '-')}.{name}".rstrip("."))
        if name not in directions[setting]:
            known = ", ".join(sorted(filter(None, datasets)))
            remedy = (
                f"Name a dataset: {known}" if known and setting == "dataset_secret_dir" else "Leave it out"
            )
            yield Problem(f"{option} is for nothing in this run", text, remedy)
        elif not text.strip():
            yield Problem(f"{option} is empty", remedy="Give it a value, or leave it out")
        elif not (path := parse_directory(text).absolute()).is_dir():
            remedy = "Give a directory with a file for each credential, such as AWS_ACCESS_KEY_ID"
            yield Problem(f"{option} is not a directory", str(path), remedy)

"""Datasets that the kubelet mounts: which locations and settings they may have. Nothing of them is copied."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from podferry.contract.claims import FORM, SCHEME, claim_path_problem, hint_for
from podferry.contract.errors import Problem
from podferry.contract.lazy_pattern import lazy_pattern
from podferry.contract.spec import PREFIX, DatasetMode
from podferry.contract.uri import Uri

SCHEMES = {DatasetMode.SHARE: SCHEME, DatasetMode.IMAGE: "image"}
FORMS = {DatasetMode.SHARE: FORM, DatasetMode.IMAGE: "image://REGISTRY/NAME:TAG"}
_COMPONENT = r"[a-z0-9]+((\.|__?|-+)[a-z0-9]+)*"
IMAGE_NAME = lazy_pattern(
    rf"([A-Za-z0-9.:\[\]-]+/)?{_COMPONENT}(/{_COMPONENT})*(:\w[\w.-]{{0,127}})?"
    r"(@[A-Za-z0-9+._-]+:[0-9a-fA-F]{32,})?"
)
"""Source: the grammar of the distribution project's references. It has no upper case after the host."""
WITHOUT_EFFECT = ("include", "exclude", "file-mode", "unpack", "shard", "medium")
"""Keys of a dataset that say how to copy it."""


def mode_problems(key: str, mode: DatasetMode, uri: Uri, settings: Collection[str]) -> Iterator[Problem]:
    """What does not fit the mode of a dataset.

    Args:
        key: `dataset` or `dataset.NAME`.
        mode: How it reaches the trainer.
        uri: Its location.
        settings: All settings of the pod, without the prefix.
    """
    dot_name = key.removeprefix("dataset")
    mode_key = f"{PREFIX}mode{dot_name}"
    path_problem = claim_path_problem(key, uri) if uri.scheme == SCHEME else None
    if mode is DatasetMode.COPY:
        if uri.scheme == SCHEMES[DatasetMode.IMAGE]:
            yield Problem(f"{PREFIX}{key}: the agent cannot copy it", str(uri), f"Set {mode_key} to image")
        elif path_problem is not None:
            yield path_problem
        return
    if uri.scheme != SCHEMES[mode]:
        what = f"{mode_key} is {mode}, but {PREFIX}{key} is no {FORMS[mode].partition(':')[0]} location"
        remedy = hint_for(uri.scheme) or f"Write {FORMS[mode]}, or remove {mode_key}"
        yield Problem(what, str(uri), remedy)
    elif path_problem is not None:
        yield path_problem
    elif mode is DatasetMode.IMAGE and not IMAGE_NAME.fullmatch(image_of(uri)):
        yield Problem(
            f"{PREFIX}{key}: not an image reference", str(uri), f"Write {FORMS[mode]}, in lower case"
        )
    for name in (f"{one}{dot_name}" for one in WITHOUT_EFFECT):
        if name in settings:
            what = f"{PREFIX}{name} has no effect: {mode_key} is {mode}, so nothing is copied"
            yield Problem(what, "", f"Remove {PREFIX}{name}, or {mode_key}")


def image_of(uri: Uri) -> str:
    """The image that a location of mode `image` names."""
    return f"{uri.bucket}/{uri.key}" if uri.key else uri.bucket

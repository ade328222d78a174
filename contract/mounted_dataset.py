"""Datasets that the kubelet mounts: which locations and settings they may have. Nothing of them is copied."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from podferry.contract.errors import Problem
from podferry.contract.spec import PREFIX, DatasetMode
from podferry.contract.uri import Uri

SCHEMES = {DatasetMode.SHARE: "pvc", DatasetMode.IMAGE: "image"}
FORMS = {DatasetMode.SHARE: "pvc://CLAIM/PATH", DatasetMode.IMAGE: "image://REGISTRY/NAME:TAG"}
WITHOUT_EFFECT = ("include", "exclude", "file-mode", "unpack", "shard", "medium")
"""Keys of a dataset that say how to copy it."""
CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
"""DNS-1123 subdomain. Source: Kubernetes, names of PersistentVolumeClaims."""


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
    if mode is DatasetMode.COPY:
        wanted = next((one for one, scheme in SCHEMES.items() if scheme == uri.scheme), None)
        if wanted is not None:
            yield Problem(f"{PREFIX}{key}: the agent cannot copy it", str(uri), f"Set {mode_key} to {wanted}")
        return
    if uri.scheme != SCHEMES[mode]:
        what = f"{mode_key} is {mode}, but {PREFIX}{key} is no {FORMS[mode].partition(':')[0]} location"
        yield Problem(what, str(uri), f"Write {FORMS[mode]}, or remove {mode_key}")
    elif mode is DatasetMode.SHARE and not (CLAIM.fullmatch(uri.bucket) and _is_plain(uri.key)):
        remedy = f"Write {FORMS[mode]} without . and .. in the path"
        yield Problem(f"{PREFIX}{key}: not a claim and a path in it", str(uri), remedy)
    for name in (f"{one}{dot_name}" for one in WITHOUT_EFFECT):
        if name in settings:
            what = f"{PREFIX}{name} has no effect: {mode_key} is {mode}, so nothing is copied"
            yield Problem(what, "", f"Remove {PREFIX}{name}, or {mode_key}")


def image_of(uri: Uri) -> str:
    """The image that a location of mode `image` names."""
    return f"{uri.bucket}/{uri.key}" if uri.key else uri.bucket


def _is_plain(path: str) -> bool:
    return not {".", ".."} & set(path.split("/"))

"""Which code a training runs: its image, and a hash of its command or script.

A lineage does not contain it, so that a fixed crash resumes. But edited code must not restore a finished
checkpoint and train nothing without a word: commits record the code, and a restore names what has changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from podferry.contract.errors import InvalidSpec

CODE_VARIABLE = "PODFERRY_CODE"
"""The agent's variable with the code of its pod."""
KFP_FLAG = "--executor_input"
KFP_SEPARATOR = "--"
"""Between the words of KFP's launcher, with ids of the run, and those of the component."""
HASH_DIGITS = 12
MAX_CACHED_LENGTH = 16 * 1024
"""Characters of a command; longer ones would fill the memory."""


class CodeVersion(msgspec.Struct, frozen=True, omit_defaults=True):
    """The code of a training.

    Attributes:
        image: As the pod names it, with its digest where it is pinned; None outside pods.
        digest: 12 hexadecimal digits of a SHA-256: in a pod of the container's command and arguments, of a
            KFP step those of its component, without inputs and ids of the run; elsewhere of the script. None
            if the image alone says what runs.
    """

    image: str | None = None
    digest: str | None = None

    @property
    def image_hash(self) -> str | None:
        """Of the image's name: 12 hexadecimal digits, which a lineage may contain."""
        return None if self.image is None else _hash(self.image.encode())


UNKNOWN_CODE = CodeVersion()


def code_of_container(container: Mapping[str, Any]) -> CodeVersion:
    """The code of a pod's container, or of a component's."""
    command, arguments = container.get("command") or [], container.get("args") or []
    if any(word.startswith(KFP_FLAG) for word in command) and KFP_SEPARATOR in command:
        at = len(command) - [*reversed(command)].index(KFP_SEPARATOR)
        return code_of_words(container.get("image"), [*command[at:], *arguments])
    return code_of_words(container.get("image"), [*command, *arguments])


def code_of_words(image: str | None, words: Sequence[str]) -> CodeVersion:
    """The code of a command in an image."""
    if not words:
        return CodeVersion(image or None)
    hash_of = _kept_hash if sum(map(len, words)) <= MAX_CACHED_LENGTH else _kept_hash.__wrapped__
    return CodeVersion(image or None, hash_of(tuple(words)))


@lru_cache(maxsize=64)
def _kept_hash(words: tuple[str, ...]) -> str:
    """Of the words, which thousands of pods of a template have in common."""
    return _hash(json.dumps(words).encode())


def code_of_script(content: bytes) -> CodeVersion:
    """The code of a script outside pods."""
    return CodeVersion(digest=_hash(content))


def code_changes(before: CodeVersion | None, now: CodeVersion | None) -> tuple[str, ...]:
    """What differs, for people; nothing as far as one of them is unknown."""
    if before is None or now is None:
        return ()
    pairs = (("image", before.image, now.image), ("code", before.digest, now.digest))
    return tuple(f"{name} {old} before, {new} now" for name, old, new in pairs if old and new and old != new)


def encode_code(code: CodeVersion) -> str:
    """The value of `CODE_VARIABLE`: one line of JSON."""
    return msgspec.json.encode(code).decode()


def decode_code(text: str) -> CodeVersion | None:
    """Read the value of `CODE_VARIABLE`; None if it is empty. Raises `InvalidSpec`."""
    try:
        return msgspec.json.decode(text, type=CodeVersion) if text else None
    except msgspec.MsgspecError as error:
        raise InvalidSpec.of(f"{CODE_VARIABLE} is invalid", str(error)) from error


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:HASH_DIGITS]

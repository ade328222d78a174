"""LightGBM's text models: the parameters come last, and from Python the categories of pandas after them.

Source: LightGBM, src/boosting/gbdt_model_text.cpp (`SaveModelToString`), python-package/lightgbm/basic.py
(`Booster.save_model`).
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from podferry.sidecar.checkpoint.detect.formats.file_section import size_of
from podferry.sidecar.checkpoint.detect.formats.verdict import COMPLETE, INCONCLUSIVE, FormatVerdict, Torn

HEADS = tuple(b"tree\nversion=%s\n" % version for version in (b"v3", b"v4"))
SNAPSHOT = ".snapshot_iter_"
"""In the suffix of snapshots, which are nothing but models."""
TAIL_BYTES = 1 << 20
CATEGORIES, PARAMETERS, PARAMETERS_END = b"pandas_categorical:", b"\nparameters:", b"end of parameters"
NO_END = "its model text has no end yet"


def lightgbm_verdict(path: Path) -> FormatVerdict:
    """Without the line of categories, it may be complete: Python adds it with a second call.

    Raises:
        Torn: It is a model without its end.
        OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = size_of(file)
        head = file.read(len(HEADS[0]))
        if head not in HEADS:
            if path.suffix.startswith(SNAPSHOT) and any(one.startswith(head) for one in HEADS):
                raise Torn(NO_END)
            return INCONCLUSIVE
        file.seek(-min(size, TAIL_BYTES), os.SEEK_END)
        tail = file.read()
    rest, _, last_line = tail.rstrip(b"\n").rpartition(b"\n")
    if last_line.startswith(CATEGORIES):
        if tail.endswith(b"\n") and _is_json(last_line.removeprefix(CATEGORIES)):
            return COMPLETE
        raise Torn(NO_END)
    if tail.endswith(b"\n") and last_line == PARAMETERS_END:
        return INCONCLUSIVE
    if not rest or (b"\nend of trees\n" in tail and PARAMETERS not in tail):
        return INCONCLUSIVE  # a very long line, or a model without parameters
    raise Torn(NO_END)


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except ValueError:
        return False
    return True

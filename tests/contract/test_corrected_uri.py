from __future__ import annotations

import re

import pytest

from podferry.contract.corrected_uri import corrected_uri
from podferry.contract.errors import InvalidSpec
from podferry.contract.uri import parse_uri


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("s3:/x", "s3://x"),
        ("s3:x/y", "s3://x/y"),
        ("s3:///x", "s3://x"),
        ("S3://b/x", "s3://b/x"),
        ("GS:b", "gs://b"),
        ("file:/x", "file:///x"),
        ("HTTP://h/x", "http://h/x"),
        ("http//h:80/x", "http://h:80/x"),
        ("smb:\\\\nas\\share\\x y", "smb://nas/share/x y"),
        ("\\\\nas\\share\\x", "smb://nas/share/x"),
        ("\\\\nas\\share/x", "smb://nas/share/x"),
        ("me@nas:/srv/x", "sftp://me@nas/srv/x"),
        ("me@nas:x/y", "sftp://me@nas/~/x/y"),
        ("nas.lab:/srv/x", "sftp://nas.lab/srv/x"),
        ("[fd00::7]:/srv/x", "sftp://[fd00::7]/srv/x"),
        ("arn:aws:s3:::b/x", "s3://b/x"),
        ("arn:aws-cn:s3:::b", "s3://b"),
    ],
)
def test_a_misspelled_uri_is_named_with_what_it_means(text, meant) -> None:
    assert corrected_uri(text) == meant
    if not text.startswith("s3:///"):
        with pytest.raises(InvalidSpec, match=f"Did you mean {re.escape(meant)}"):
            parse_uri(text)


@pytest.mark.parametrize(
    "text",
    ["s3://b/x", "file:///x", "/x", "./s3:/x", "s3", "s3:", "c:/x", "memory:x", "x:y/z", "x@2:", "s3/x"],
)
def test_other_texts_are_not_corrected(text) -> None:
    assert corrected_uri(text) is None

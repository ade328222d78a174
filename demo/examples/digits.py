"""The digits as the data of an example."""

from __future__ import annotations

from demo.examples.example import Bucket
from demo.images import pictures
from demo.objects import put_objects
from podferry.contract.quantity import format_bytes


def put_digits(bucket: Bucket) -> str:
    """Write them below `digits`; returns a line about it."""
    objects = {one.name: one.data for one in pictures()}
    written = put_objects(f"{bucket.uri}/digits", bucket.environ, objects)
    return f"{len(objects):,} handwritten digits, {format_bytes(written)}, at {bucket.uri}/digits"

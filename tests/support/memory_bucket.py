"""Buckets in memory: objects put there without a store, and the death of the process."""

from podferry.storage.memory.store import CONTENTS, Content


class Killed(BaseException):
    """The process dies."""


def put(bucket, *names):
    """Put objects that contain their names into the bucket of a URI; return its content."""
    content = CONTENTS.setdefault(bucket.bucket, Content())
    content.objects.update({name: name.encode() for name in names})
    return content

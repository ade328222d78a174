"""Reads whose request cannot say what is read; the contract suite has all the others."""

import pytest

from podferry.contract.errors import Changed, Corrupt
from podferry.contract.manifest import Entry
from podferry.contract.uri import Uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.read_length import length_to_request

PLACE = StoreLocation(Uri("s3", "bucket"))
FOUND = Entry("a", 10, "t")


async def asked(start, length, tag="", size=None):
    """The length to request, and how often the object was looked at."""
    looks = []

    async def stat(name):
        looks.append(name)
        return FOUND

    return await length_to_request(PLACE, stat, "a", start, length, (tag, size)), len(looks)


@pytest.mark.parametrize(
    ("start", "length", "expected"),
    [
        (0, None, (None, 0)),
        (0, 3, (3, 0)),
        (9, 3, (3, 0)),  # the store refuses it
        (4, None, (6, 1)),
        (10, None, (0, 1)),
        (0, 0, (0, 1)),
        (10, 0, (0, 1)),
    ],
)
async def test_the_object_is_looked_at_only_where_a_request_cannot_ask(start, length, expected):
    assert await asked(start, length) == expected


@pytest.mark.parametrize("length", [0, None])
async def test_what_is_past_the_end_or_not_as_listed_is_refused(length):
    with pytest.raises(Corrupt, match="10 bytes; requested"):
        await asked(11, length)
    for listed in (("other", None), ("", 9)):
        with pytest.raises(Changed):
            await asked(1, length, *listed)

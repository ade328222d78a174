import pytest

from demo.listing import page_of

KEYS = ["b/1", "a", "b/2", "c/x/1", "é", "b"]


def names(**options):
    page = page_of(KEYS, **{"prefix": "", "delimiter": "", "after": "", "most": 1000, **options})
    return page.keys, page.prefixes, page.token


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, (("a", "b", "b/1", "b/2", "c/x/1", "é"), (), "")),
        ({"prefix": "b/"}, (("b/1", "b/2"), (), "")),
        ({"delimiter": "/"}, (("a", "b", "é"), ("b/", "c/"), "")),
        ({"prefix": "c/", "delimiter": "/"}, ((), ("c/x/",), "")),
        ({"after": "b"}, (("b/1", "b/2", "c/x/1", "é"), (), "")),
        ({"most": 2}, (("a", "b"), (), "b")),
        ({"delimiter": "/", "after": "b", "most": 1}, ((), ("b/",), "b/")),
        ({"delimiter": "/", "after": "b/", "most": 1}, ((), ("c/",), "c/")),
        ({"prefix": "nothing"}, ((), (), "")),
    ],
)
def test_a_page(options, expected):
    assert names(**options) == expected


@pytest.mark.parametrize("most", [1, 2, 3, 4])
@pytest.mark.parametrize("delimiter", ["", "/"])
def test_the_pages_together_are_the_listing(most, delimiter):
    found, after = [], ""
    while True:
        keys, prefixes, after = names(delimiter=delimiter, after=after, most=most)
        found += [*keys, *prefixes]
        if not after:
            break
    keys, prefixes, _ = names(delimiter=delimiter)
    assert sorted(found) == sorted([*keys, *prefixes])

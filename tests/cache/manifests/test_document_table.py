import pytest

from podferry.cache.manifests.document_table import (
    Found,
    Ignored,
    Key,
    parse_count,
    parse_labels,
    parse_mapping,
    parse_mappings,
    parse_strings,
    read_table,
    text,
)
from podferry.contract.errors import InvalidSpec

TABLE = {
    "size": Key("bytes", text(int)),
    "old": Ignored("it has no use"),
    "place": {"host": Key("host", text(str))},
}


def test_what_is_said_what_is_wrong_and_what_is_ignored():
    found = Found()
    document = {"size": 5, "old": 1, "place": {"host": "a", "hots": "b"}, "plaice": {}}
    read_table(document, TABLE, "spec.", found)
    assert found.values == {"bytes": 5, "host": "a"}
    assert [str(one) for one in found.notes] == ["spec.old is ignored (it has no use)."]
    assert [str(one) for one in found.problems] == [
        "spec.place.hots: unknown key. Did you mean 'host'?",
        "spec.plaice: unknown key. Did you mean 'place'?",
    ]


def test_a_value_in_the_place_of_a_mapping():
    found = Found()
    read_table({"place": 3}, TABLE, "spec.", found)
    assert [str(one) for one in found.problems] == ["spec.place: not a mapping (3). Keys: host."]


@pytest.mark.parametrize(
    ("parse", "right", "value", "wrong"),
    [
        (text(str), 5, "5", True),
        (text(str), "a", "a", ["a"]),
        (parse_count, 1, 1, 0),
        (parse_count, 3, 3, "3"),
        (parse_count, 2, 2, True),
        (parse_strings, ["a"], ("a",), "a"),
        (parse_strings, [], (), [1]),
        (parse_labels, {"a": "b"}, {"a": "b"}, {"a": 1}),
        (parse_mapping, {"a": 1}, {"a": 1}, [1]),
        (parse_mappings, [{"a": 1}], ({"a": 1},), [1]),
    ],
)
def test_values(parse, right, value, wrong):
    assert parse(right) == value
    with pytest.raises(InvalidSpec):
        parse(wrong)

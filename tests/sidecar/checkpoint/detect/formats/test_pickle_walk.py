import io
import pickle
import pickletools
from collections import OrderedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.sidecar.checkpoint.detect.formats.pickle_walk import (
    LENGTH_FORMATS,
    READ_BYTES,
    has_protocol_header,
    walk_pickles,
)
from podferry.sidecar.checkpoint.detect.formats.verdict import Inconclusive

VALUES = st.recursive(
    st.integers() | st.text() | st.binary() | st.floats() | st.sampled_from([complex, io.BytesIO, range(3)]),
    lambda inner: st.lists(inner, max_size=3) | st.tuples(inner, inner),
    max_leaves=6,
)


def walked(data):
    seen = []
    ends = walk_pickles(io.BytesIO(data), len(data), lambda code, argument: seen.append((code, argument)))
    return ends, seen


@given(VALUES, st.integers(0, 5))
def test_the_opcodes_are_those_of_pickletools(value, protocol):
    data = pickle.dumps(value, protocol)
    ends, seen = walked(data)
    assert ends == [len(data)]
    expected = [opcode.code.encode("latin-1") for opcode, _, _ in pickletools.genops(data)]
    assert [code for code, _ in seen] == [
        code for code in expected if code not in (pickle.PROTO, pickle.STOP)
    ]


def test_arguments_are_given_without_their_length():
    _, seen = walked(pickle.dumps(("text", 7, OrderedDict), 2))
    assert (pickle.BINUNICODE, b"text") in seen
    assert (pickle.BININT1, b"\x07") in seen
    assert (pickle.GLOBAL, b"collections\nOrderedDict") in seen
    _, seen = walked(pickle.dumps("x" * (READ_BYTES + 1), 2))
    assert seen[0] == (pickle.BINUNICODE, b"")


def test_each_of_several_pickles_has_its_end():
    parts = [pickle.dumps(value) for value in ("a", [1], None)]
    ends = [len(b"".join(parts[:number])) for number in (1, 2, 3)]
    assert walked(b"".join(parts))[0] == ends


@pytest.mark.parametrize("data", [b"\x80\x09.", b"\xff", b"\x94.", b"\x80\x02T\xff\xff\xff\xff.", b"I1\n.x"])
def test_something_else_is_inconclusive(data):
    with pytest.raises(Inconclusive):
        walked(data)


@pytest.mark.parametrize("data", [b"", b"\x80", b"I1", b"cmodule\nname", b"\x80\x02X\x05\x00", b"J\x00"])
def test_a_pickle_cut_short_has_no_end(data):
    with pytest.raises(EOFError):
        walked(data)


def test_a_protocol_header_has_two_bytes():
    assert [has_protocol_header(head) for head in (b"", b"\x80", b"\x80\x01", b"\x80\x02", b"(\x02")] == [
        False,
        False,
        False,
        True,
        False,
    ]


def test_every_argument_of_every_opcode_can_be_skipped():
    """A new Python may add another kind of argument."""
    kinds = {opcode.arg.n for opcode in pickletools.opcodes if opcode.arg is not None}
    assert all(kind >= 0 or kind == pickletools.UP_TO_NEWLINE or kind in LENGTH_FORMATS for kind in kinds)
    pairs = [opcode.arg for opcode in pickletools.opcodes if opcode.arg and "pair" in opcode.arg.name]
    assert set(pairs) == {pickletools.stringnl_noescape_pair}

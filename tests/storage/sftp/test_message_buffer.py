import pytest
from hypothesis import given
from hypothesis import strategies as st

from podferry.storage.sftp.message_buffer import MAX_MESSAGE_BYTES, MessageBuffer
from podferry.storage.sftp.messages import ProtocolError, Request, message

BODIES = st.lists(st.binary(max_size=40), min_size=1, max_size=5)


@given(bodies=BODIES, cuts=st.lists(st.integers(min_value=1, max_value=20), min_size=1))
def test_messages_are_complete_however_they_arrive(bodies, cuts):
    data = b"".join(message(Request.READ, number, body) for number, body in enumerate(bodies))
    buffer, found, position = MessageBuffer(), [], 0
    while position < len(data):
        piece = data[position : position + cuts[position % len(cuts)]]
        found += [(kind, bytes(rest)) for kind, rest in buffer.feed(piece)]
        position += len(piece)
    assert found == [(Request.READ, number.to_bytes(4, "big") + body) for number, body in enumerate(bodies)]


@pytest.mark.parametrize("length", [0, 4, MAX_MESSAGE_BYTES + 1])
def test_an_impossible_length_is_no_sftp(length):
    with pytest.raises(ProtocolError):
        list(MessageBuffer().feed(length.to_bytes(4, "big") + b"x"))


def test_what_a_login_script_prints_is_shown():
    with pytest.raises(ProtocolError, match=r"not send SFTP messages but Welcome!\\n"):
        list(MessageBuffer().feed(b"Welcome!\n"))

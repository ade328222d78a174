import pytest

from podferry.storage.ftp.replies import MAX_LINE_BYTES, MAX_REPLY_LINES, Endless, Replies


def taken(*pieces: bytes) -> list[str]:
    """All replies in what arrives."""
    replies, found = Replies(), []
    for piece in pieces:
        replies.feed(piece)
        while (reply := replies.take()) is not None:
            found.append(reply)
    return found


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"226 done\r\n213 20261123\r\n", ["226 done", "213 20261123"]),
        (b"250-facts\r\n Size=1; 250 a\r\n250 end\r\n", ["250-facts\n Size=1; 250 a\n250 end"]),
        (b"220-a\r\n226 b\r\n220-c\r\n220 d\r\n", ["220-a\n226 b\n220-c\n220 d"]),
        (b"\r\n200\n", ["", "200"]),
        (b"SSH-2.0-OpenSSH_9.2\r\n", ["SSH-2.0-OpenSSH_9.2"]),
        (b"200 \xff\r\n", ["200 \udcff"]),
        (b"226 not complet", []),
    ],
)
def test_replies_are_the_same_however_they_arrive(sent: bytes, expected: list[str]) -> None:
    assert taken(sent) == expected
    assert taken(*(sent[at : at + 1] for at in range(len(sent)))) == expected


def test_what_was_not_taken_is_forgotten() -> None:
    replies = Replies()
    replies.feed(b"220-a\r\nb")
    assert replies.take() is None
    replies.clear()
    replies.feed(b"226 done\r\n")
    assert replies.take() == "226 done"


@pytest.mark.parametrize("sent", [b"2" * (MAX_LINE_BYTES + 1), b"220-more\r\n" * (MAX_REPLY_LINES + 1)])
def test_a_reply_without_end_is_an_error(sent: bytes) -> None:
    with pytest.raises(Endless):
        taken(sent)

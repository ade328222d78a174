import errno
import stat
import struct

import pytest

from podferry.storage.sftp.messages import (
    Attributes,
    Failure,
    Name,
    ProtocolError,
    Request,
    message,
    read_attributes,
    read_body,
    read_extensions,
    read_handle,
    read_names,
    read_status,
    string,
    write_body,
)

FILE = stat.S_IFREG | 0o644
ATTRIBUTES = struct.pack(">IQIIIII", 0x1 | 0x2 | 0x4 | 0x8, 7, 1, 2, FILE, 10, 20)
EXTENDED = struct.pack(">II", 0x80000000, 1) + string(b"a") + string(b"b")


def status(code, text=b"words"):
    return memoryview(struct.pack(">I", code) + string(text) + string(b"en"))


def test_requests_have_their_length_and_number():
    assert message(Request.STAT, 7, string(b"/a")) == bytes.fromhex("0000000b 11 00000007 00000002 2f61")
    assert read_body(string(b"h"), 1 << 33, 5) == bytes.fromhex("00000001 68 0000000200000000 00000005")
    assert write_body(string(b"h"), 3, b"xy") == bytes.fromhex("00000001 68 0000000000000003 00000002 7879")


def test_attributes_are_those_that_the_server_has():
    assert read_attributes(memoryview(ATTRIBUTES)) == (Attributes(7, FILE, 20), len(ATTRIBUTES))
    assert read_attributes(memoryview(bytes(4))) == (Attributes(), 4)
    assert read_attributes(memoryview(EXTENDED)) == (Attributes(), len(EXTENDED))


@pytest.mark.parametrize(
    ("mode", "found"),
    [
        (FILE, (True, False, False)),
        (stat.S_IFDIR, (False, True, False)),
        (stat.S_IFLNK, (False, False, True)),
        (stat.S_IFSOCK, (False, False, False)),
        (0o644, (True, False, False)),  # a server that states permissions alone
        (None, (True, False, False)),
    ],
)
def test_what_a_file_is(mode, found):
    attributes = Attributes(mode=mode)
    assert (attributes.is_file, attributes.is_directory, attributes.is_link) == found


def test_names_may_be_any_bytes():
    line = b"-rw-r--r-- 1 a a 7 Jan 1 b"
    data = struct.pack(">I", 2) + b"".join(
        string(name) + string(line) + ATTRIBUTES for name in (b"\xe9", b"b")
    )
    assert read_names(memoryview(data)) == [
        Name(b"\xe9", Attributes(7, FILE, 20)),
        Name(b"b", Attributes(7, FILE, 20)),
    ]


@pytest.mark.parametrize(
    ("code", "error", "number"),
    [
        (2, FileNotFoundError, errno.ENOENT),
        (3, PermissionError, errno.EACCES),
        (4, Failure, errno.EIO),
        (5, OSError, errno.EINVAL),
        (8, OSError, errno.EOPNOTSUPP),
        (77, Failure, errno.EIO),
    ],
)
def test_a_status_is_an_error(code, error, number):
    found = read_status(status(code), "/a")
    assert type(found) is error
    assert (found.errno, found.strerror, found.filename) == (number, "words", "/a")


def test_success_the_end_and_a_status_without_words():
    assert read_status(status(0), "") is None
    assert isinstance(read_status(status(1), ""), EOFError)
    assert read_status(memoryview(struct.pack(">I", 4)), "").strerror == "status 4"


def test_extensions_and_handles():
    data = string(b"limits@openssh.com") + string(b"1") + string(b"x") + string(b"2")
    assert read_extensions(memoryview(data)) == {"limits@openssh.com": b"1", "x": b"2"}
    assert read_handle(memoryview(string(b"handle") + b"more")) == string(b"handle")


@pytest.mark.parametrize("data", [string(b"name")[:-1], ATTRIBUTES[:-1], struct.pack(">I", 3) + b"x"])
@pytest.mark.parametrize("read", [read_handle, read_attributes, read_names])
def test_what_is_shorter_than_it_states_is_refused(read, data):
    if (read, data) == (read_names, string(b"name")[:-1]):
        data = string(data)
    with pytest.raises(ProtocolError):
        read(memoryview(data[:-1] if read is read_attributes else data[:9]))

import hashlib

import pytest

from demo.multipart import InvalidPartError, UnknownUploadError, Uploads


def tag(body):
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def listed(*parts):
    found = "".join(
        f"<Part><ETag>&quot;{tag(body)}&quot;</ETag><PartNumber>{number}</PartNumber></Part>"
        for number, body in parts
    )
    return f"<CompleteMultipartUpload>{found}</CompleteMultipartUpload>".encode()


def test_parts_become_one_object_in_the_order_of_the_document():
    uploads = Uploads()
    upload = uploads.begin("a")
    uploads.send("a", upload, 2, b"two")
    uploads.send("a", upload, 1, b"one")
    assert uploads.complete("a", upload, listed((1, b"one"), (2, b"two"))) == b"onetwo"
    with pytest.raises(UnknownUploadError):
        uploads.parts("a", upload)


@pytest.mark.parametrize("parts", [[(1, b"other")], [(1, b"one"), (2, b"two")]])
def test_a_part_that_was_not_sent_so_is_invalid(parts):
    uploads = Uploads()
    upload = uploads.begin("a")
    uploads.send("a", upload, 1, b"one")
    with pytest.raises(InvalidPartError):
        uploads.complete("a", upload, listed(*parts))
    assert uploads.parts("a", upload) == {1: b"one"}


def test_uploads_belong_to_their_key_and_can_be_ended():
    uploads = Uploads()
    upload = uploads.begin("a")
    with pytest.raises(UnknownUploadError):
        uploads.send("b", upload, 1, b"one")
    uploads.forget("a", upload)
    with pytest.raises(UnknownUploadError):
        uploads.forget("a", upload)

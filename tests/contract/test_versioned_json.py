import os

import msgspec
import pytest

from podferry.contract.errors import Corrupt, FormatTooNew
from podferry.contract.versioned_json import decode_document, encode_document


class Thing(msgspec.Struct, frozen=True):
    size: int
    format: int = 2


def test_a_document_is_read() -> None:
    assert decode_document(b'{"format":1,"size":3}', Thing, 2, "here") == Thing(3, 1)


def test_fields_of_a_later_minor_version_are_ignored() -> None:
    assert decode_document(b'{"format":2,"size":3,"colour":"red"}', Thing, 2, "here") == Thing(3, 2)


def test_a_later_format_is_distinguished_from_damage() -> None:
    with pytest.raises(FormatTooNew, match=r"thing here .*later podferry .*format 3, .*up to 2.*Upgrade"):
        decode_document(b'{"format":3,"anything":[]}', Thing, 2, "here")


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"{}", b'{"size":3}', b'{"format":"1","size":3}', b'{"format":1,"size":"x"}', b"\xff"],
)
def test_other_documents_are_corrupt(data: bytes) -> None:
    with pytest.raises(Corrupt, match="here is not a valid thing"):
        decode_document(data, Thing, 2, "here")


class Named(msgspec.Struct, frozen=True):
    name: str
    format: int = 2


def test_a_name_that_is_not_utf8_is_encoded_with_question_marks() -> None:
    data = encode_document(Named(os.fsdecode(b"ckpt-\xff.bin")))
    assert decode_document(data, Named, 2, "here") == Named("ckpt-?.bin")

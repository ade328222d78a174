import os
import subprocess
import sys

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


THREADS = """
import sys, threading
import msgspec
from podferry.contract.versioned_json import decode_document
sys.setswitchinterval(1e-6)
inside, together = set(), []
def note(frame, event, _):
    if frame.f_code.co_name == "get_class_annotations":  # of msgspec
        (inside.add if event == "call" else inside.discard)(threading.get_ident())
        together.extend([frame] * (len(inside) > 1))
threading.setprofile(note)
for number in range(100):
    kind = msgspec.defstruct("Outer", [("format", int), *((f"f{one}", int, 0) for one in range(99))])
    barrier = threading.Barrier(4)
    def decode():
        barrier.wait()
        assert decode_document(b'{"format":1}', kind, 1, "here").format == 1
    threads = [threading.Thread(target=decode) for _ in range(4)]
    [one.start() for one in threads]
    [one.join() for one in threads]
assert not together, len(together)
"""


def test_no_two_threads_are_the_first_to_read_a_kind_of_document() -> None:
    done = subprocess.run([sys.executable, "-c", THREADS], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")

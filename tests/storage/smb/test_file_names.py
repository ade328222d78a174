"""Names that a share can have, and those that it makes up."""

import pytest

from podferry.contract.errors import InvalidSpec
from podferry.storage.smb.file_names import (
    last_component,
    may_be_mangled,
    plain_name,
    server_name,
    server_path,
)


@pytest.mark.parametrize(
    ("plain", "sent"),
    [
        ("plain name.bin", "plain name.bin"),
        ('a"b', "a\uf020b"),
        ("a*b:c<d>e?f\\g|h", "a\uf021b\uf022c\uf023d\uf024e\uf025f\uf026g\uf027h"),
        ("end ", "end\uf028"),
        ("end.", "end\uf029"),
        ("...", "..\uf029"),
        ("日本", "日本"),
    ],
)
def test_a_name_is_sent_as_linux_sends_it_and_read_again(plain, sent):
    assert server_name(plain) == sent
    assert plain_name(sent) == plain


def test_a_path_has_backslashes():
    assert server_path("a/b:c/d") == "a\\b\uf022c\\d"
    assert server_path("") == ""
    assert last_component("\\a\\b") == "b"


@pytest.mark.parametrize("name", ["con", "NUL.txt", "Com1", "lpt9.a.b", "a\uf022b", "clock$"])
def test_names_that_no_share_can_have(name):
    with pytest.raises(InvalidSpec, match="cannot have this name"):
        server_name(name)


@pytest.mark.parametrize("name", ["console", "com10", "nulls", "aux1", "COM"])
def test_names_that_only_look_like_devices(name):
    assert server_name(name) == name


@pytest.mark.parametrize("name", ["AXT27A~B.TXT", "LONGER~A", "ABCDEF~1.TAR", "FILE~12.A"])
def test_what_samba_makes_of_a_name_is_suspected(name):
    assert may_be_mangled(name)


@pytest.mark.parametrize(
    "name", ["axt27a~b.txt", "README~", "a~1", "train.csv", "ABCDEFG~1.TXT", "A~B~C.TXT"]
)
def test_usual_names_are_not(name):
    assert not may_be_mangled(name)

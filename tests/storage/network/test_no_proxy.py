"""Entries of `NO_PROXY`; `test_proxies.py` has what they match."""

import pytest

from podferry.storage.network.no_proxy import matches, parse_no_proxy, split_port


def test_entries_that_match_no_host_are_kept_apart():
    text = "a, https://host .b 10.0.0.0/33,10.0.0.0/8,* c:port d:99999 *.e. ., f..g 300.1.1.1 [::1]:80 ::1"
    entries, ignored = parse_no_proxy(text)
    assert entries == ("a", ".b", "10.0.0.0/8", "*", "*.e", "[::1]:80", "::1")
    assert ignored == ("https://host", "10.0.0.0/33", "c:port", "d:99999", ".", "f..g", "300.1.1.1")


@pytest.mark.parametrize(
    ("entry", "pattern", "port"),
    [
        ("a:1", "a", "1"),
        ("a.:1", "a", "1"),
        ("[::1]:2", "::1", "2"),
        ("[::1]", "::1", ""),
        ("::1", "::1", ""),
    ],
)
def test_ports_are_split(entry, pattern, port):
    assert split_port(entry) == (pattern, port)


def test_a_port_restricts_an_entry():
    assert matches("a:1", "a", 1)
    assert not matches("a:1", "a", 2)
    assert matches("10.0.0.1:1", "10.0.0.1", 1)
    assert not matches("a", "10.0.0.1", 1)

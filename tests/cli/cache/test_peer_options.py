from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from podferry.cli.cache.peer_options import PeerOptions, make_peers, peer_options, take_peer_options


class Client:
    """In the place of the API server: one Service with two endpoints, of three that there should be."""

    async def replicas(self, name):
        assert name == "digits"
        return 3

    async def endpoint_slices(self, service):
        assert service == "digits"
        return [{"endpoints": [{"addresses": ["10.0.0.1", "10.0.0.2"]}]}]


def parsed(*words):
    found = []

    @click.command()
    @peer_options
    def command(**options):
        found.append(take_peer_options(options))
        assert options == {}

    result = CliRunner().invoke(command, words)
    return found[0] if found else result.output


def test_the_options():
    assert parsed() == PeerOptions()
    words = (
        "--peer",
        "http://a:1",
        "--peer",
        "http://b:2",
        "--service",
        "s",
        "--token",
        "/t",
    )
    assert parsed(*words) == PeerOptions(("http://a:1", "http://b:2"), "s", Path("/t"))
    assert "Write https://host:port or http://host:port" in parsed("--peer", "b")


def test_without_any_a_holder_is_alone():
    assert make_peers("s3://b/c", PeerOptions(), None) is None


@pytest.mark.parametrize(
    ("options", "expected", "found"),
    [
        (PeerOptions(("http://a:1",)), 1, ("http://a:1",)),
        (PeerOptions(service="digits"), 2, ("http://10.0.0.1:8091", "http://10.0.0.2:8091")),
    ],
)
async def test_where_the_others_are(options, expected, found):
    peers = make_peers("s3://b/c", options, Client())
    assert (peers.uri, await peers.count()) == ("s3://b/c", expected)
    assert await peers.find() == found

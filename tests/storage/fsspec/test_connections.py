"""Opening file systems: options that they do not know, and caches."""

import time
from typing import ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from podferry.contract.errors import InvalidSpec, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.fsspec.connections import open_file_system
from podferry.storage.http.connector import Connector
from podferry.storage.network.settings import read_network
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS
from tests.support.private_ca import PrivateCa
from tests.support.reserved_port import reserved_port

GCSFS_SECONDS = 20.0
"""Its own back-off takes 31 s or more."""


class Strict(MemoryFileSystem):
    """Forwards its options to a client that knows only one."""

    protocol = "strict"
    store: ClassVar = {}
    pseudo_dirs: ClassVar = [""]

    def __init__(self, skip_instance_cache=True, **options):
        super().__init__()
        self.connect(**options)

    def connect(self, host=""):
        self.host = host


@pytest.fixture(autouse=True)
def registered():
    fsspec.register_implementation("strict", Strict, clobber=True)


async def test_a_file_system_gets_only_options_that_it_knows():
    store = open_store(parse_uri("strict://x/y"))
    await store.write("a", b"0")
    assert await store.children() == ["a"]
    await store.write("b", b"1")
    assert await store.children() == ["a", "b"], "no listing is cached"


async def test_an_option_that_a_file_system_does_not_know_is_named():
    store = open_store(
        parse_uri("strict://x/y"), StoreConfig(credentials={"FSSPEC_STRICT_PASWORD": "secret"})
    )
    with pytest.raises(
        InvalidSpec, match=r"strict:// does not accept its options .*pasword.*FSSPEC_STRICT_"
    ) as caught:
        await store.children()
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("configured", [False, True], ids=["no CA", "another CA"])
async def test_gcsfs_does_not_repeat_what_a_certificate_refuses(answering, private_ca, quick, configured):
    """Its own back-off takes half a minute, and no option ends it."""
    hellos, context = [], private_ca.server_context("127.0.0.1")
    context.sni_callback = lambda *hello: hellos.append(hello[1])
    endpoint = await answering(no_request, context)
    network = read_network({}, {"ca": PrivateCa().pem} if configured else {})
    config = StoreConfig(endpoint, credentials={"GOOGLE_SKIP_SIGNATURE": "true"}, network=network)
    store = open_store(parse_uri("gs://bucket/x"), config, quick)
    with pytest.raises(InvalidSpec, match=r"certificate of the server .* is not trusted"):
        await store.stat("a")
    await store.close()
    assert len(hellos) <= 2, "one for the object, one for a directory of its name"


async def no_request(request):
    raise AssertionError(request)


async def test_gcsfs_closes_every_connection_as_other_sessions_do():
    file_system, _ = open_file_system(parse_uri("gs://bucket/x"), {"token": "anon"}, LIMITS)
    assert isinstance(file_system.session_kwargs["connector"], Connector)


@pytest.mark.parametrize("call", ["stat", "children", "write"])
async def test_gcsfs_does_not_repeat_connections_to_a_server_that_was_never_reached(call, quick):
    with reserved_port() as port:
        config = StoreConfig(f"http://127.0.0.1:{port}", credentials={"GOOGLE_SKIP_SIGNATURE": "true"})
        store = open_store(parse_uri("gs://bucket/x"), config, quick)
        calls = {"stat": store.stat("a"), "children": store.children(), "write": store.write("a", b"1")}
        started = time.monotonic()
        with pytest.raises(Unavailable, match=r"does not respond .*connection refused"):
            await calls.pop(call)
        for other in calls.values():
            other.close()
        assert time.monotonic() - started < GCSFS_SECONDS
        await store.close()

"""What NameNodes and DataNodes may do: redirect elsewhere, list for ever, lie, cut, fail over."""

import asyncio
import unicodedata
from contextlib import asynccontextmanager
from urllib.parse import quote

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from podferry.contract.errors import Corrupt, InvalidSpec, NotFound, Unavailable
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import Limits

LIMITS = Limits(retries=2, retry_seconds=2, stall_seconds=1)
FILE = {"type": "FILE", "length": 10, "modificationTime": 7, "fileId": 16400, "pathSuffix": "a"}
DATA = b"0123456789"


def refused(exception, status=403):
    return web.json_response({"RemoteException": {"exception": exception, "message": "m"}}, status=status)


def listing(*names, remaining=0):
    statuses = [{**FILE, "pathSuffix": name} for name in names]
    found = {"partialListing": {"FileStatuses": {"FileStatus": statuses}}, "remainingEntries": remaining}
    return web.json_response({"DirectoryListing": found})


class Node:
    """A NameNode that is its own DataNode; tests replace what it responds to an operation."""

    def __init__(self):
        self.asked = []
        self.responses = {
            "GETFILESTATUS": lambda request: web.json_response({"FileStatus": FILE}),
            "OPEN": self.redirect,
        }

    def redirect(self, request):
        if "data" not in request.query:
            raise web.HTTPTemporaryRedirect(str(request.url.update_query(data="1")))
        start, length = int(request.query["offset"]), int(request.query["length"])
        return web.Response(body=DATA[start : start + length])

    async def respond(self, request):
        self.asked.append(request.query["op"])
        found = self.responses[request.query["op"]](request)
        return await found if hasattr(found, "__await__") else found


@asynccontextmanager
async def serving(node):
    app = web.Application()
    app.router.add_route("*", "/webhdfs/v1/{path:.*}", node.respond)
    async with TestServer(app) as server:
        yield f"{server.host}:{server.port}"


@pytest.fixture
async def node():
    return Node()


@pytest.fixture
async def store(node):
    async with serving(node) as address:
        store = open_store(parse_uri(f"webhdfs://{address}/data"), StoreConfig(), LIMITS)
        yield store
        await store.close()


async def names(store):
    return [entry.name async for entry in store.entries()]


async def test_a_range_is_read_by_the_redirection(node, store):
    assert bytes(await store.read("a", 2, 3, "16400-7-10", 10)) == b"234"
    assert node.asked == ["OPEN", "OPEN", "GETFILESTATUS"]


@pytest.mark.parametrize(
    "target",
    [
        "http://169.254.169.254/webhdfs/v1/latest/meta-data",
        "http://127.0.0.1/latest/meta-data",
        "file:///webhdfs/v1/etc/passwd",
        "/webhdfs/v1/a",
        "",
    ],
)
async def test_a_redirection_elsewhere_is_refused(node, store, target):
    node.responses["OPEN"] = lambda request: web.Response(status=307, headers={"Location": target})
    with pytest.raises(InvalidSpec, match="redirected to"):
        await store.read("a", 0, 10)


async def test_a_redirection_that_composes_letters_leads_to_the_name_that_was_asked_for(node, store):
    """A NameNode writes both names alike: é, and e with its accent as macOS has it."""
    paths = []

    def redirect(request):
        paths.append(request.path)
        if "data" in request.query:
            return web.Response(body=DATA)
        composed = quote(unicodedata.normalize("NFC", request.path))
        place = f"http://{request.host}{composed}?{request.query_string}&data=1"
        return web.Response(status=307, headers={"Location": place})

    node.responses["OPEN"] = redirect
    for name in ("\u00e9", "e\u0301"):
        assert bytes(await store.read(name, 0, 10)) == DATA
        assert paths == [f"/webhdfs/v1/data/{name}"] * 2
        paths.clear()


async def test_more_than_was_requested_is_refused(node, store):
    def too_much(request):
        return web.Response(body=DATA * 10) if "data" in request.query else node.redirect(request)

    node.responses["OPEN"] = too_much
    with pytest.raises(Corrupt, match="more than the 10 bytes"):
        await store.read("a", 0, 10)


async def test_a_cut_body_is_read_on_from_where_it_ends(node, store):
    ranges = []

    async def cut(request):
        if "data" not in request.query:
            return node.redirect(request)
        start, length = int(request.query["offset"]), int(request.query["length"])
        ranges.append((start, length))
        response = web.StreamResponse(headers={"Content-Length": str(length)})
        await response.prepare(request)
        await response.write(DATA[start : start + 4])
        if length > 4:
            request.transport.close()
        return response

    node.responses["OPEN"] = cut
    assert bytes(await store.read("a", 0, 10, "16400-7-10", 10)) == DATA
    assert ranges == [(0, 10), (4, 6), (8, 2)]


async def test_a_data_node_that_does_not_respond_is_avoided(node, store):
    def place(request):
        if "data" in request.query or "excludedatanodes" in request.query:
            return node.redirect(request)
        return web.Response(status=307, headers={"Location": f"http://localhost:1{request.path_qs}"})

    node.responses["OPEN"] = place
    assert bytes(await store.read("a", 0, 10)) == DATA


async def test_the_only_data_node_is_asked_again(node, store):
    asked = []

    def place(request):
        asked.append(request.query.get("excludedatanodes"))
        if asked[-1]:
            return refused("IOException")
        if len(asked) == 1:
            return web.Response(status=307, headers={"Location": f"http://localhost:1{request.path_qs}"})
        return node.redirect(request)

    node.responses["OPEN"] = place
    assert bytes(await store.read("a", 0, 10)) == DATA
    assert asked[:2] == [None, "localhost"]


async def test_a_body_that_hangs_is_unavailable(node, store):
    released = asyncio.Event()

    async def hang(request):
        if "data" not in request.query:
            return node.redirect(request)
        response = web.StreamResponse(headers={"Content-Length": "10"})
        await response.prepare(request)
        await released.wait()
        return response

    node.responses["OPEN"] = hang
    with pytest.raises(Unavailable):
        await store.read("a", 0, 10)
    released.set()


async def test_pages_follow_each_other(node, store):
    def page(request):
        after = request.query.get("startAfter", "")
        return listing("a", "b", remaining=1) if not after else listing("c")

    node.responses["LISTSTATUS_BATCH"] = page
    assert await names(store) == ["a", "b", "c"]


@pytest.mark.parametrize("page", [("a",), ()])
async def test_a_listing_without_end_is_corrupt(node, store, page):
    node.responses["LISTSTATUS_BATCH"] = lambda request: listing(*page, remaining=1)
    with pytest.raises(Corrupt, match="no end"):
        await names(store)


@pytest.mark.parametrize("name", ["..", ".", "x/y", "../x", "/etc/passwd", ""])
@pytest.mark.parametrize("kind", ["FILE", "DIRECTORY"])
async def test_a_path_in_the_place_of_a_name_is_corrupt(node, store, name, kind):
    members = [{**FILE, "pathSuffix": "a"}, {**FILE, "type": kind, "pathSuffix": name}]
    found = {"partialListing": {"FileStatuses": {"FileStatus": members}}, "remainingEntries": 0}
    node.responses["LISTSTATUS_BATCH"] = lambda request: web.json_response({"DirectoryListing": found})
    with pytest.raises(Corrupt, match="a name that is none"):
        await names(store)


@pytest.mark.parametrize("body", ["<html>", "{}", '{"DirectoryListing": {"partialListing": []}}', "[]"])
async def test_what_is_no_listing_is_named(node, store, body):
    node.responses["LISTSTATUS_BATCH"] = lambda request: web.Response(text=body)
    with pytest.raises(InvalidSpec, match="does not respond as a NameNode"):
        await names(store)


async def test_a_directory_that_cannot_be_listed_is_named(node, store):
    directory = {**FILE, "type": "DIRECTORY", "pathSuffix": "sub"}

    def page(request):
        if request.path.endswith("/sub"):
            return refused("AccessControlException")
        found = {"partialListing": {"FileStatuses": {"FileStatus": [directory]}}, "remainingEntries": 0}
        return web.json_response({"DirectoryListing": found})

    node.responses["LISTSTATUS_BATCH"] = page
    with pytest.raises(Exception, match="/data/sub"):
        await names(store)


async def test_the_active_name_node_is_found_and_remembered(node):
    standby = Node()
    standby.responses["GETFILESTATUS"] = lambda request: refused("StandbyException")
    async with serving(standby) as first, serving(node) as second:
        rows = {
            "dfs.ha.namenodes.one": "nn1,nn2",
            "dfs.namenode.http-address.one.nn1": first,
            "dfs.namenode.http-address.one.nn2": second,
        }
        properties = "".join(
            f"<property><name>{k}</name><value>{v}</value></property>" for k, v in rows.items()
        )
        site = {"hdfs-site.xml": f"<configuration>{properties}</configuration>"}
        store = open_store(parse_uri("webhdfs://one/data"), StoreConfig(credentials=site), LIMITS)
        for _ in range(3):
            assert (await store.stat("a")).size == 10
        assert len(standby.asked) == 1
        await store.close()


async def test_errors_that_pass_are_retried_and_others_are_not(node, store):
    left = [refused("RetriableException", 503), web.Response(status=502)]
    node.responses["GETFILESTATUS"] = lambda request: (
        left.pop() if left else web.json_response({"FileStatus": FILE})
    )
    assert (await store.stat("a")).size == 10
    node.asked.clear()
    node.responses["GETFILESTATUS"] = lambda request: refused("FileNotFoundException", 404)
    with pytest.raises(NotFound):
        await store.stat("a")
    assert node.asked == ["GETFILESTATUS"]


async def test_a_lost_response_to_a_rename_is_no_failure(node, store):
    """The NameNode has renamed, and its response is lost: the second attempt finds no source."""
    renamed = []

    def rename(request):
        renamed.append(request.query["destination"])
        return web.Response(status=502) if len(renamed) == 1 else refused("FileNotFoundException", 404)

    def status(request):
        if renamed and request.path.endswith(".tmp"):
            return refused("FileNotFoundException", 404)
        return web.json_response({"FileStatus": FILE})

    async def create(request):
        if "data" not in request.query:
            return node.redirect(request)
        await request.read()
        return web.Response(status=201)

    node.responses |= {
        "RENAME": rename,
        "GETFILESTATUS": status,
        "CREATE": create,
        "GETFILECHECKSUM": lambda request: web.json_response({"FileChecksum": None}),
    }
    await store.write("a", DATA)
    assert renamed == ["/data/a", "/data/a"]


async def test_what_hdfs_has_not_stored_is_damaged(node, store):
    deleted = []

    async def create(request):
        if "data" not in request.query:
            return node.redirect(request)
        await request.read()
        return web.Response(status=201)

    checksum = {"algorithm": "MD5-of-0MD5-of-512CRC32C", "bytes": "0" * 64}
    node.responses |= {
        "CREATE": create,
        "GETFILECHECKSUM": lambda request: web.json_response({"FileChecksum": checksum}),
        "DELETE": lambda request: deleted.append(request.path) or web.json_response({"boolean": True}),
    }
    with pytest.raises(Unavailable, match="damaged"):
        await store.write("a", DATA)
    assert len(deleted) == 1
    del checksum["algorithm"]
    with pytest.raises(Unavailable, match="10 of 11 bytes stored"):
        await store.write("a", DATA + b"x")


def test_a_user_in_the_uri_is_refused():
    for scheme in ("webhdfs", "swebhdfs"):
        with pytest.raises(InvalidSpec, match="HADOOP_USER_NAME"):
            open_store(parse_uri(f"{scheme}://user@host/data"), StoreConfig())


def test_a_nameservice_without_web_addresses_is_named():
    row = "<property><name>dfs.ha.namenodes.one</name><value>nn1</value></property>"
    site = {"hdfs-site.xml": f"<configuration>{row}</configuration>"}
    with pytest.raises(InvalidSpec, match=r"no dfs.namenode.https-address.one"):
        open_store(parse_uri("swebhdfs://one/data"), StoreConfig(credentials=site))

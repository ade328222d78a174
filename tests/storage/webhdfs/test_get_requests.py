"""What the connection pool asks a DataNode."""

from podferry.contract.manifest import Entry
from podferry.contract.uri import parse_uri
from podferry.storage.network.settings import DIRECT
from podferry.storage.request_builder import request_address
from podferry.storage.webhdfs.get_requests import DataNodeRequests

NODE = "http://data1:9864/webhdfs/v1/x%20y/a?op=OPEN&user.name=me&namenoderpcaddress=one&offset=0"


def builder(*redirections):
    asked, left = [], list(redirections)

    async def redirect(path):
        asked.append(path)
        return left.pop(0)

    address = request_address("http://name:9870", DIRECT)
    return DataNodeRequests(parse_uri("webhdfs://name:9870/x y").key, address, redirect, DIRECT), asked


async def test_requests_go_to_the_data_node_and_name_the_inode():
    found, asked = builder(NODE)
    assert (found.origin.host, found.origin.port) == ("name", 9870)
    entry = Entry("a", 10, "16400-7-10")
    await found.prepare([entry])
    await found.prepare([entry])
    assert asked == ["/x y/a"]
    assert (found.origin.host, found.origin.port) == ("data1", 9864)
    assert found.origin.ranges_in_address
    line, host, *_ = found.build(entry, 2, 3).decode().split("\r\n")
    query = "op=OPEN&user.name=me&namenoderpcaddress=one&offset=2&length=3"
    assert line == f"GET /webhdfs/v1/.reserved/.inodes/16400?{query} HTTP/1.1"
    assert host == "Host: data1:9864"


async def test_without_an_inode_the_path_is_named():
    found, _ = builder(NODE)
    await found.prepare([Entry("a?b", 10, "-7-10")])
    assert found.build(Entry("a?b", 10, "-7-10"), 0, 10).startswith(b"GET /webhdfs/v1/x%20y/a%3Fb?op=OPEN&")


async def test_an_address_that_needs_encoding_is_left_alone():
    found, _ = builder("http://data_ü:9864/webhdfs/v1/a?op=OPEN")
    await found.discover(Entry("a", 1))
    assert found.origin.host == "name"

import msgspec
import pytest
from aiohttp import web

from podferry.contract.dataset_reference import Reference, parse_reference, reference_to
from podferry.contract.errors import (
    AccessDenied,
    BucketNotFound,
    Changed,
    Corrupt,
    EmptyDataset,
    InvalidSpec,
    NotFound,
    Refused,
    Unavailable,
)
from podferry.contract.manifest import Entry, encode_manifest, freeze
from podferry.contract.uri import parse_uri
from podferry.storage.listing.dataset import (
    changed_since,
    check_frozen,
    list_dataset,
    open_dataset,
    open_listing,
)
from podferry.storage.memory.store import CONTENTS, Fault, MemoryStore
from podferry.storage.store import StoreConfig
from tests.support.listing_servers import s3_page, xml
from tests.support.memory_bucket import put

ANY = StoreConfig()


async def test_the_manifest_is_sorted_and_relative(bucket):
    put(bucket, "d/b", "d/a/c", "other/x", "dx")
    manifest = await list_dataset(MemoryStore(bucket / "d"))
    assert [entry.name for entry in manifest.entries] == ["a/c", "b"]
    assert manifest.uri == str(bucket / "d")
    assert manifest.bytes == len("d/a/c") + len("d/b")


async def test_listing_many_objects_takes_linear_time(bucket):
    put(bucket, *(f"d/{i:05}" for i in range(20_000)))
    assert (await list_dataset(MemoryStore(bucket / "d"))).files == 20_000


@pytest.mark.parametrize("key", ["d/../x", "d//b", "d/a\nb", "d//etc/passwd", "d/" + "x" * 256])
async def test_hostile_names_are_corrupt_and_reported(bucket, key):
    put(bucket, "d/fine", key)
    with pytest.raises(Corrupt) as caught:
        await list_dataset(MemoryStore(bucket / "d"))
    assert len(caught.value.problems) == 1
    assert ascii(key[2:])[:50] in caught.value.problems[0].measured


ENDPOINT = "http://127.0.0.1:9"
KEYS = {
    "AWS_ACCESS_KEY_ID": "k",
    "AWS_SECRET_ACCESS_KEY": "s",
    "AZURE_STORAGE_ACCOUNT_NAME": "k",
    "AZURE_STORAGE_ACCOUNT_KEY": "b3RoZXI=",
}


@pytest.mark.parametrize("scheme", ["s3", "az", "http", "https", "ftp"])
async def test_a_server_that_is_not_there_is_no_empty_dataset(scheme):
    """Nobody listens on the port; a retry may help, so no rule for permanent failures may apply."""
    is_bucket = scheme in {"s3", "az"}
    config = StoreConfig(endpoint=ENDPOINT if is_bucket else None, credentials=KEYS)
    host = "bucket" if is_bucket else "127.0.0.1:9"
    with pytest.raises(Unavailable, match="connection refused"):
        await open_dataset(parse_uri(f"{scheme}://{host}/d"), config)


async def test_a_file_name_that_is_not_text_is_corrupt(tmp_path):
    (tmp_path / "d").mkdir()
    with open(bytes(tmp_path / "d") + b"/\xff", "wb"):  # noqa: ASYNC230, PTH123 - a name of bytes
        pass
    with pytest.raises(Corrupt, match="UTF-8"):
        await open_dataset(parse_uri(str(tmp_path / "d")), ANY)


async def test_a_single_object_is_a_dataset_of_one_file(bucket):
    put(bucket, "d/train.tar", "d/train.tar.idx")
    dataset = await open_dataset(bucket / "d/train.tar", ANY)
    assert [entry.name for entry in dataset.manifest.entries] == ["train.tar"]
    assert dataset.manifest.uri == str(bucket / "d/train.tar"), "its reference names it alone"
    entry = dataset.manifest.entries[0]
    assert bytes(await dataset.store.read(entry.name, 0, entry.size, entry.tag)) == b"d/train.tar"


async def test_a_prefix_takes_precedence(bucket):
    put(bucket, "d/x/1")
    dataset = await open_dataset(bucket / "d", ANY)
    assert [entry.name for entry in dataset.manifest.entries] == ["x/1"]


async def test_errors_of_the_listing_pass(bucket):
    put(bucket, "d/1").faults.append(Fault("entries", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await open_dataset(bucket / "d", ANY)
    put(bucket).faults.append(Fault("stat", error=AccessDenied.of("no")))
    with pytest.raises(AccessDenied):
        await open_dataset(bucket / "x", ANY)


async def test_local_files_and_their_neighbours(tmp_path):
    (tmp_path / "digits").mkdir()
    (tmp_path / "digits/1.png").write_bytes(b"1")
    top = parse_uri(str(tmp_path))
    assert (await open_dataset(top / "digits", ANY)).manifest.files == 1
    assert (await open_dataset(top / "digits/1.png", ANY)).manifest.files == 1
    with pytest.raises(EmptyDataset, match=f"Did you mean {top / 'digits'}") as caught:
        await open_dataset(top / "digit", ANY)
    assert caught.value.problems[0].what == f"the dataset {tmp_path}/digit does not exist"
    with pytest.raises(BucketNotFound):
        await open_dataset(parse_uri("/no-such-mount/d"), ANY)


async def test_a_uri_without_an_engine_is_refused(bucket):
    with pytest.raises(InvalidSpec):
        await open_dataset(parse_uri(f"{bucket}?engine=obstore"), ANY)


async def test_a_frozen_reference_is_compared(bucket):
    put(bucket, "d/1", "d/2")
    before = (await open_dataset(bucket / "d", ANY)).manifest
    check_frozen(Reference(bucket / "d"), before)
    check_frozen(reference_to(before), before)
    put(bucket, "d/3")
    after = (await open_dataset(bucket / "d", ANY)).manifest
    with pytest.raises(Changed) as caught:
        check_frozen(reference_to(before), after)
    (problem,) = caught.value.problems
    assert "frozen: 2 files, 6 B" in problem.measured
    assert "now: 3 files, 9 B" in problem.measured
    assert before.digest in problem.measured
    assert after.digest in problem.measured


async def test_a_reference_of_a_digest_alone_is_frozen_too(bucket):
    put(bucket, "d/1")
    manifest = (await open_dataset(bucket / "d", ANY)).manifest
    check_frozen(parse_reference(f"{bucket / 'd'}#sha256={manifest.digest}"), manifest)
    with pytest.raises(Changed, match=f"frozen: sha256={'0' * 64}"):
        check_frozen(parse_reference(f"{bucket / 'd'}#sha256={'0' * 64}"), manifest)


async def test_the_old_manifest_names_what_changed(bucket):
    put(bucket, "d/1", "d/2", "d/3")
    before = (await open_dataset(bucket / "d", ANY)).manifest
    content = put(bucket, "d/4")
    del content.objects["d/1"]
    content.objects["d/2"] = b"else"
    after = (await open_dataset(bucket / "d", ANY)).manifest
    with pytest.raises(Changed, match="1 changed: 2; 1 added: 4; 1 removed: 1; frozen: 3 files"):
        check_frozen(reference_to(before), after, before)
    other = freeze(before.uri, [Entry("1", 1)])
    with pytest.raises(Changed, match=r"\(frozen: 3 files") as caught:
        check_frozen(reference_to(before), after, other)
    assert "removed" not in str(caught.value), "another manifest does not help"


# A manifest as the source


async def frozen(bucket, name="m.podferry.json", **change):
    """A manifest of the objects below `d`, as an object."""
    manifest = (await open_dataset(bucket / "d", ANY)).manifest
    document = encode_manifest(msgspec.structs.replace(manifest, **change))
    CONTENTS[bucket.bucket].objects[name] = document
    return manifest


@pytest.mark.parametrize(
    ("data", "allowed", "what"),
    [
        ("s3://private/d", (("*",), ("s3://datasets/",)), "the policy does not allow this location"),
        ("http://169.254.169.254/latest", (), "a metadata service"),
    ],
)
async def test_data_of_a_manifest_must_be_allowed(bucket, data, allowed, what):
    """The webhook has only seen the manifest's own location."""
    put(bucket, "d/1")
    await frozen(bucket, uri=data)
    with pytest.raises(Refused, match=what):
        await open_dataset(bucket / "m.podferry.json", StoreConfig(allowed_sources=allowed))


async def test_the_files_of_a_manifest_are_not_listed(bucket):
    content = put(bucket, "d/1", "d/2")
    manifest = await frozen(bucket)
    put(bucket, "d/3")
    content.faults.append(Fault("entries", times=99, error=AccessDenied.of("no listing")))
    content.faults.append(Fault("children", times=99, error=AccessDenied.of("no listing")))
    dataset = await open_dataset(bucket / "m.podferry.json", ANY)
    assert dataset.manifest == manifest
    check_frozen(parse_reference(f"{bucket / 'm.podferry.json'}#sha256={manifest.digest}"), dataset.manifest)
    with pytest.raises(Changed):
        check_frozen(parse_reference(f"{bucket / 'm.podferry.json'}#sha256={'0' * 64}"), dataset.manifest)
    for entry in manifest.entries:
        assert await dataset.store.read(entry.name, 0, entry.size, entry.tag) == b"d/" + entry.name.encode()


async def test_changes_since_a_manifest_are_reported(bucket):
    content = put(bucket, "d/1", "d/2", "d/3")
    manifest = await frozen(bucket)
    assert await changed_since(manifest, ANY) is None
    content.objects["d/1"] = b"else"
    del content.objects["d/2"]
    dataset = await open_dataset(bucket / "m.podferry.json", ANY)
    for name, error in (("1", Changed), ("2", NotFound)):
        (entry,) = [entry for entry in manifest.entries if entry.name == name]
        with pytest.raises(error, match=f"d/{name}"):
            await dataset.store.read(entry.name, 0, entry.size, entry.tag)
    changed = await changed_since(manifest, ANY)
    assert "1 changed: 1; 1 removed: 2" in str(changed)


@pytest.mark.parametrize("same_name", [False, True])
async def test_a_manifest_of_one_object_finds_it(bucket, same_name):
    """A prefix may have a file of its own name: then the manifest names that one."""
    put(bucket, "a/t/t" if same_name else "a/t")
    dataset = await open_dataset(bucket / "a/t", ANY)
    CONTENTS[bucket.bucket].objects["m.podferry.json"] = encode_manifest(dataset.manifest)
    again = await open_dataset(bucket / "m.podferry.json", ANY)
    (entry,) = again.manifest.entries
    assert again.manifest == dataset.manifest
    assert await again.store.read(entry.name, tag=entry.tag) == (b"a/t/t" if same_name else b"a/t")


async def test_a_local_manifest_may_name_data_anywhere(bucket, tmp_path):
    put(bucket, "d/1")
    manifest = await frozen(bucket)
    (tmp_path / "m.podferry.json").write_bytes(encode_manifest(manifest))
    dataset = await open_dataset(parse_uri(str(tmp_path / "m.podferry.json")), ANY)
    assert dataset.store.uri == bucket / "d"


@pytest.mark.parametrize("uri", ["file:///etc", "sftp://elsewhere/data", "memory://another/d"])
async def test_a_manifest_cannot_choose_this_machine_or_a_host(bucket, uri):
    """Otherwise its author could read the agent's files, or receive the credentials."""
    put(bucket, "d/1")
    await frozen(bucket, uri=uri)
    with pytest.raises(Corrupt, match="only a local manifest may name"):
        await open_dataset(bucket / "m.podferry.json", ANY)


async def test_an_invalid_manifest_is_reported(bucket):
    content = put(bucket, "d/1", "x.podferry.json")
    with pytest.raises(Corrupt, match=r"x\.podferry\.json is not a valid manifest"):
        await open_dataset(bucket / "x.podferry.json", ANY)
    await frozen(bucket, bytes=7)
    with pytest.raises(Corrupt, match="contradicts its entries"):
        await open_dataset(bucket / "m.podferry.json", ANY)
    content.objects["m.podferry.json"] = encode_manifest(freeze(str(bucket / "d"), []))
    with pytest.raises(EmptyDataset, match="names no files"):
        await open_dataset(bucket / "m.podferry.json", ANY)
    with pytest.raises(EmptyDataset, match="Did you mean"):
        await open_dataset(bucket / "n.podferry.json", ANY)


async def test_a_manifest_below_a_dataset_is_a_file_like_any_other(bucket):
    put(bucket, "d/1", "d/a.podferry.json")
    assert (await open_dataset(bucket / "d", ANY)).manifest.files == 2


# A wrong listing


async def test_a_listing_is_not_refused_for_its_names(bucket):
    """What a selection leaves out may be called anything."""
    put(bucket, "d/fine", "d/../x")
    listing = await open_listing(bucket / "d", ANY)
    assert sorted(entry.name for entry in listing.entries) == ["../x", "fine"]
    assert listing.manifest is None
    with pytest.raises(Corrupt):
        await open_dataset(bucket / "d", ANY)


async def test_a_name_that_is_listed_twice_is_refused(bucket):
    put(bucket, "d/1", "d/2")

    class Twice(MemoryStore):
        async def entries(self, prefix=""):
            for _ in range(2):
                async for entry in super().entries(prefix):
                    yield entry

    with pytest.raises(Corrupt, match="listed twice") as caught:
        await list_dataset(Twice(bucket / "d"))
    assert len(caught.value.problems) == 2


async def test_empty_objects_are_files(bucket):
    content = put(bucket, "d/1")
    content.objects["d/nothing"] = b""
    manifest = (await open_dataset(bucket / "d", ANY)).manifest
    assert [(entry.name, entry.size) for entry in manifest.entries] == [("1", 3), ("nothing", 0)]


async def test_an_object_that_shrinks_or_grows_after_the_listing_is_reported(bucket):
    content = put(bucket, "d/1", "d/2")
    dataset = await open_dataset(bucket / "d", ANY)
    content.objects.update({"d/1": b"d", "d/2": b"d/2 and more"})
    for entry in dataset.manifest.entries:
        with pytest.raises(Changed, match=f"d/{entry.name}"):
            await dataset.store.read(entry.name, 0, entry.size, entry.tag)


def serving_for_any_name(asked, content_type):
    """An S3 service with an empty bucket, behind something that responds for every name."""

    async def answer(request):
        asked.append(request.method)
        if request.method == "GET" and "prefix" in request.query:
            return xml(s3_page([]))
        return web.Response(text="<title>App</title>", content_type=content_type, headers={"ETag": '"1"'})

    return answer


@pytest.mark.parametrize("name", ["d", "d/sub", "d.podferry.json"])
async def test_a_web_page_is_not_taken_for_a_dataset_of_one_object(answering, name):
    asked = []
    config = StoreConfig(endpoint=await answering(serving_for_any_name(asked, "text/html")), credentials=KEYS)
    with pytest.raises(InvalidSpec) as caught:
        await open_dataset(parse_uri(f"s3://bucket/{name}"), config)
    for words in (
        f"responds with a web page instead of the object s3://bucket/{name} (",
        "text/html; charset=utf-8, 18 bytes",
        "console",
        ".html",
    ):
        assert words in str(caught.value)
    assert asked.count("HEAD") == 1


@pytest.mark.parametrize(
    ("name", "content_type"), [("d.html", "text/html"), ("D.HTM", "text/html"), ("d", "text/plain")]
)
async def test_an_object_that_may_be_a_page_is_a_dataset(answering, name, content_type):
    config = StoreConfig(endpoint=await answering(serving_for_any_name([], content_type)), credentials=KEYS)
    dataset = await open_dataset(parse_uri(f"s3://bucket/{name}"), config)
    assert [(entry.name, entry.size) for entry in dataset.manifest.entries] == [(name, 18)]
    await dataset.store.close()


async def test_records_of_a_sync_are_no_part_of_the_dataset(bucket):
    put(bucket, "d/a", "d/.podferry/sync/1.json", "d/.podferry/other", "d/x/.podferry/sync/2")
    names = [".podferry/other", "a", "x/.podferry/sync/2"]
    assert [one.name for one in (await list_dataset(MemoryStore(bucket / "d"))).entries] == names
    seen = []
    listing = await open_listing(bucket / "d", StoreConfig(), lambda store, entry: seen.append(entry.name))
    assert sorted(entry.name for entry in listing.entries) == sorted(seen) == names

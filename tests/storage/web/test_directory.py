"""A listing of a web server is complete or an error that says what the server does."""

from __future__ import annotations

import pytest
from structlog.testing import capture_logs

from podferry.contract.errors import (
    AccessDenied,
    Corrupt,
    EmptyDataset,
    FerryError,
    InvalidSpec,
    NotFound,
    TemporaryError,
    Throttled,
    Unavailable,
)
from podferry.contract.uri import parse_uri
from podferry.storage.factory import open_store
from podferry.storage.listing.dataset import open_dataset
from podferry.storage.store import StoreConfig
from podferry.storage.timeouts_and_limits import LIMITS
from podferry.storage.web import page
from tests.support.web_server import Answer, Handler, ScriptedServer, file, hangs, moved, resets

TOP = Answer('<title>Index of /set/</title><a href="../">..</a><a href="a">a</a><a href="sub/">sub/</a>')
SUB = Answer('<a href="b">b</a>')
LOGIN = Answer('<form><input type="password"></form>')
SITE = {
    "/set": moved("/set/", 301),
    "/set/": TOP,
    "/set/a": file(),
    "/set/sub": moved("/set/sub/", 301),
    "/set/sub/": SUB,
    "/set/sub/b": file(7),
    "/login": LOGIN,
    "/sorry": Answer("<h1>Back soon</h1>"),
}
COMPLETE = {"a": 5, "sub/b": 7}


@pytest.fixture
async def listed(answering):
    """Lists what a server with these answers, in addition to the usual ones, has below a path."""

    async def lists(answers: dict[str, Answer], path: str = "set") -> dict[str, int]:
        server = ScriptedServer(SITE | answers)
        endpoint = await answering(server.handle)
        dataset = await open_dataset(parse_uri(f"{endpoint}/{path}"), StoreConfig())
        await dataset.store.close()
        # A response to HEAD that is not plain is left to the file system, which asks again.
        repeated = [each for each in server.requested if not each.startswith("HEAD")]
        assert len(repeated) == len(set(repeated)), "nothing is requested twice"
        return {entry.name: entry.size for entry in dataset.manifest.entries}

    return lists


@pytest.mark.parametrize("slashless", [SITE["/set"], TOP, Answer(status=404)])
async def test_it_is_complete(listed, slashless: Answer) -> None:
    assert await listed({"/set": slashless}) == COMPLETE


# A server that fails


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (hangs, Unavailable),
        (resets, Unavailable),
        (Answer(status=403), AccessDenied),
        (Answer(status=429), Throttled),
        (Answer(status=500), Unavailable),
        (Answer(status=503), Unavailable),
    ],
)
@pytest.mark.parametrize("path", ["/set/", "/set/sub/", "/set/sub/b"])
async def test_what_cannot_be_opened_is_an_error(
    answering, quick, impatient, path: str, answer: Answer | Handler, error: type
) -> None:
    endpoint = await answering(ScriptedServer(SITE | {path: answer}).handle)
    store = open_store(parse_uri(f"{endpoint}/set"), StoreConfig(), impatient if answer is hangs else quick)
    with pytest.raises(error, match=endpoint):
        [entry async for entry in store.entries()]
    await store.close()


async def test_directories_without_end_are_named(listed) -> None:
    with pytest.raises(Corrupt, match=r"has no end \(100 levels"):
        await listed({"*": Answer('<a href="deeper/">')}, "endless")


async def test_a_page_without_end_is_named(listed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "MAX_PAGE_BYTES", 10)
    with pytest.raises(Corrupt, match=r"the index page of http://.*/set has no end"):
        await listed({})


async def test_a_port_that_nobody_listens_on_has_no_file() -> None:
    store = open_store(parse_uri("http://127.0.0.1:9/set"), StoreConfig(), LIMITS)
    with pytest.raises(Unavailable):
        await store.stat("a")
    await store.close()


# A sub directory that shows something else

OTHER_PAGES = {
    "login": (
        moved("/login"),
        AccessDenied,
        r"asks for a login.*/set/sub \(HTTP 302, redirected to .*/login;",
    ),
    "login in place": (LOGIN, AccessDenied, r"asks for a login instead of showing .*/set/sub \(HTTP 200;"),
    "single sign-on": (
        moved("/sorry?next=sub"),
        Unavailable,
        r"from .*/set/sub to.*HTTP 302.*/sorry\?next=\*\*\*;",
    ),
    "maintenance": (
        moved("/sorry", 307),
        Unavailable,
        r"from .*/set/sub to another page \(HTTP 307.*/sorry;",
    ),
    "moved": (moved("/sorry", 301), InvalidSpec, r"/set/sub has moved \(HTTP 301, redirected to .*/sorry;"),
    "no content": (Answer("", status=204), Unavailable, r"without an index page for .*/set/sub \(HTTP 204;"),
    "choices": (Answer('<a href="b">', status=300), Unavailable, r"without an index page .*\(HTTP 300;"),
    "empty body": (
        Answer(""),
        Unavailable,
        r"without an index page for the directory .*/set/sub \(HTTP 200; its body is",
    ),
    "spaces": (
        Answer(" \n"),
        Unavailable,
        r"without an index page for the directory .*/set/sub \(HTTP 200; its body is",
    ),
    "own page": (Answer("<h1>About</h1>"), InvalidSpec, r"page of the directory .*/set/sub does not list it"),
    "queries": (
        Answer('<title>Index of /set/sub</title><a href="b?x=1">'),
        InvalidSpec,
        r"/set/sub does not list it \(HTTP 200; it links to b\?x",
    ),
    "pages": (
        Answer('<a href="b">b</a><a href="?page=2">'),
        InvalidSpec,
        r"/set/sub has several pages.*page=2",
    ),
    "link header": (
        Answer('<a href="b">b</a>', link='</set/sub/?part=2>; rel="next"'),
        InvalidSpec,
        r"/set/sub has several pages.*part=2",
    ),
    "cut": (Answer('<a href="b">b</a>', missing=83), Unavailable, r"/set/sub ends.*after 17 of 100 bytes"),
    "cut, no length": (Answer('<html><a href="b">', missing=-1), Unavailable, r"/set/sub ends .*no </html>"),
    "gone": (Answer(status=410), Unavailable, r"/set/sub is listed and cannot be opened \(HTTP 410"),
    "missing": (Answer(status=404), Unavailable, r"/set/sub is listed and cannot be opened \(HTTP 404"),
    "json": (
        Answer("[]", "application/json"),
        InvalidSpec,
        r"no HTML index page .*/set/sub \(HTTP 200; application/json, but .*autoindex_format html",
    ),
    "loop": (
        moved("/set/sub/?again"),
        Unavailable,
        r"redirects from .*/set/sub to another page \(redirected \d+ times;",
    ),
    "elsewhere": (
        moved("ftp://host/sub/"),
        Unavailable,
        r"redirects from .*/set/sub to .*\(redirected to ftp://host/sub/;",
    ),
}


@pytest.mark.parametrize("page", OTHER_PAGES)
async def test_a_sub_directory_that_shows_something_else_is_named(page: str, answering) -> None:
    answer, error, message = OTHER_PAGES[page]
    endpoint = await answering(ScriptedServer(SITE | {"/set/sub/": answer}).handle)
    with pytest.raises(FerryError, match=message) as caught:
        await open_dataset(parse_uri(f"{endpoint}/set"), StoreConfig())
    assert isinstance(caught.value, error)
    assert all(problem.remedy for problem in caught.value.problems)


@pytest.mark.parametrize(
    "answers",
    [
        {"/set/sub/": moved("/mirror/sub/", 301), "/mirror/sub/": SUB},
        {"/set/sub/": moved("/set/sub/index.html"), "/set/sub/index.html": SUB},
        {"/set/sub/": Answer(SUB.text, "Text/HTML; Charset=UTF-8")},
        {"/set/sub/": Answer(str(SUB.text).encode("utf-16"), "text/html;charset=UTF-16")},
        {"/set/sub/": Answer('<?xml version="1.0"?><html><a href="b"/></html>', "application/xhtml+xml")},
        {"/set/sub/": Answer(SUB.text, "")},
        {"/set/sub/": Answer(f"<html>{SUB.text}</html>", missing=-1)},
    ],
)
async def test_an_index_may_be_served_in_other_ways(listed, answers: dict[str, Answer]) -> None:
    assert await listed(answers) == COMPLETE


async def test_an_empty_sub_directory_has_no_files(listed) -> None:
    assert await listed({"/set/sub/": Answer("<title>Index of /set/sub</title>")}) == {"a": 5}


# Links that do not show what they lead to

FLAT = Answer('<a href="a">a</a><a href="sub">sub</a>')


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/set/sub": moved("/mirror/sub/", 302), "/mirror/sub/": SUB},
        {"/set/sub": Answer('<a href="sub/b">b</a>')},
        {"/set/sub": moved("/set/sub/index.html"), "/set/sub/index.html": SUB},
    ],
)
async def test_a_directory_that_is_linked_without_its_slash(listed, answers: dict[str, Answer]) -> None:
    assert await listed({"/set/": FLAT, **answers}) == COMPLETE


async def test_files_may_be_stored_elsewhere(listed) -> None:
    assert await listed({"/set/a": moved("/cdn/0f3b?signed"), "/cdn/0f3b": file()}) == COMPLETE


async def test_files_may_be_web_pages(listed) -> None:
    page = Answer("<p>12345")
    pages = Answer('<a href="a.html">a</a><a href="B.HTM">b</a><a href="c.xhtml">c</a>')
    answers = {"/set/": pages, "/set/a.html": moved("/set/a"), "/set/a": page, "/set/B.HTM": page}
    answers["/set/c.xhtml"] = Answer(page.text, "application/xhtml+xml")
    assert await listed(answers) == {"a.html": 8, "B.HTM": 8, "c.xhtml": 8}


@pytest.mark.parametrize("link", ["..%2Flogin", "%00", "x%2F%2Fy"])
async def test_names_that_lead_out_of_the_dataset_are_not_requested(answering, link: str) -> None:
    server = ScriptedServer(SITE | {"/set/": Answer(f'<a href="{link}">')})
    endpoint = await answering(server.handle)
    with pytest.raises(FerryError, match="name"):
        await open_dataset(parse_uri(f"{endpoint}/set"), StoreConfig())
    assert server.requested == ["GET /set", "GET /set/"]


async def test_a_size_of_zero_is_asked_for_twice(listed) -> None:
    """Some servers say zero when they are asked for the header alone."""
    assert await listed({"HEAD /set/a": Answer("", "application/octet-stream")}) == COMPLETE
    assert await listed({"/set/a": file(0)}) == {**COMPLETE, "a": 0}


async def test_a_name_that_is_not_text_is_named(listed) -> None:
    with pytest.raises(InvalidSpec, match=r"does not accept the name .*/sub/\ufffd\.bin \(%E9\.bin is not"):
        await listed({"/set/sub/": Answer('<a href="%E9.bin">')})


async def test_a_file_of_the_wrong_type_is_a_file(listed) -> None:
    assert await listed({"/set/a": Answer("12345", "text/html")}) == COMPLETE


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (moved("/login"), AccessDenied, r"asks for a login instead of showing .*/set/a \(HTTP 302.*/login;"),
        (moved("/sorry"), TemporaryError, r"redirects from .*/set/a to another page"),
        (Answer("<html>Accept the terms"), TemporaryError, r"a web page instead of the file .*/set/a"),
    ],
)
async def test_a_page_instead_of_a_file_is_named(listed, answer: Answer, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        await listed({"/set/a": answer})


async def test_links_that_may_be_files_are_reported_once(listed) -> None:
    skipped = "".join(f'<a href="{name}">' for name in ("c?download=1", "d?download=1", "http://other/set/e"))
    with capture_logs() as logs:
        top = Answer(f'<a href="?C=N;O=D">{TOP.text}{skipped}')
        assert await listed({"/set/": top, "/set/sub/": Answer(f'{SUB.text}<a href="f?x">')}) == COMPLETE
    (log,) = [log for log in logs if log["log_level"] == "warning"]
    assert log["event"] == "links of index pages are not followed"
    assert (log["count"], log["examples"]) == (4, "c?download=1, d?download=1, http://other/set/e")


# The address of the dataset itself


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (moved("/login"), AccessDenied, "asks for a login"),
        (LOGIN, AccessDenied, "asks for a login"),
        (moved("/sorry"), Unavailable, "redirects from"),
        (
            Answer("<h1>Welcome</h1>"),
            InvalidSpec,
            r"the page of the directory http://.*/set does not list it",
        ),
        (Answer(""), Unavailable, "without an index page"),
        (Answer("<title>Index of /set/</title>"), EmptyDataset, "the dataset is empty"),
        (Answer(status=404), EmptyDataset, r"no object below .*/set\)\. Check the path"),
        (Answer(status=410), NotFound, r"/set was removed \(HTTP 410"),
    ],
)
@pytest.mark.parametrize("path", ["set", "set/"])
async def test_a_page_that_is_no_index_is_no_dataset(
    listed, path: str, answer: Answer, error: type, message: str
) -> None:
    for slashless in (answer, moved("/set/", 301)):
        with pytest.raises(error, match=message):
            await listed({"/set": slashless, "/set/": answer}, path)


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/xml"])
async def test_an_index_that_is_not_html_is_named(listed, kind: str) -> None:
    with pytest.raises(InvalidSpec, match=rf"no HTML index page .*/set \(HTTP \d+.*{kind}[;,]"):
        await listed({"/set/": Answer("<x/>", kind)})


async def test_a_web_page_is_a_dataset_of_one_file(listed) -> None:
    page = Answer('<title>Index of everything</title><a href="a">a</a>')
    assert await listed({"/set/index.html": page}, "set/index.html") == {"index.html": len(page.text)}


async def test_a_web_page_that_redirects_to_another_is_no_dataset(listed) -> None:
    with pytest.raises(Unavailable, match="redirects from"):
        await listed({"/set/page.html": moved("/sorry")}, "set/page.html")


async def test_a_file_without_a_type_is_not_read_as_a_page(listed) -> None:
    assert await listed({"/set/a": Answer(b"12345", "")}, "set/a") == {"a": 5}


@pytest.mark.parametrize("status", [202, 204, 205, 300])
async def test_a_response_without_the_file_is_no_empty_file(listed, status: int) -> None:
    with pytest.raises(Unavailable, match=rf"without the file http://.*/set/a \(HTTP {status};"):
        await listed({"/set/a": Answer("", "", status)})


async def test_an_empty_file_is_one(listed) -> None:
    assert await listed({"/set/a": Answer("", "text/plain")}) == COMPLETE | {"a": 0}


async def test_a_file_whose_head_has_no_content_is_asked_for(listed) -> None:
    assert await listed({"HEAD /set/a": Answer("", "", 204)}) == COMPLETE


# Signatures in addresses

SIGNED = "?page=2&md5=S1gned&X-Amz-Signature=S1gned"


@pytest.mark.parametrize(
    ("answers", "error"),
    [
        ({"/set/": moved(f"/sorry{SIGNED}")}, Unavailable),
        ({"/set/": moved(f"/login{SIGNED}")}, AccessDenied),
        ({"/set/": moved(f"http://[{SIGNED}")}, FerryError),
        ({"/set/": moved(f"ftp://127.0.0.1/x{SIGNED}")}, FerryError),
        ({"/set/a": moved(f"http://[{SIGNED}")}, FerryError),
        ({"/set/a": moved(f"/sorry{SIGNED}")}, FerryError),
        ({"/set/": Answer(f'<a href="a">a</a><a href="{SIGNED}">Next</a>')}, InvalidSpec),
        ({"/set/": Answer(f'<a href="a{SIGNED}">a</a>')}, InvalidSpec),
    ],
    ids=["page", "login", "no URL", "other scheme", "file", "page for a file", "next page", "links"],
)
async def test_no_signature_is_shown(listed, answers: dict[str, Answer], error: type) -> None:
    answers = {"/set/": TOP} | answers
    with pytest.raises(error) as caught:
        await listed({"/set": moved("/set/", 301)} | answers)
    assert "S1gned" not in str(caught.value)


async def test_no_signature_is_shown_of_a_link_that_is_not_followed(listed) -> None:
    with capture_logs() as logs:
        await listed({"/set/": Answer(f'{TOP.text}<a href="b?X-Amz-Signature=S1gned">b</a>')})
    assert [log["examples"] for log in logs] == ["b?X-Amz-Signature=***"]

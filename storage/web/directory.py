"""Lists one directory of a web server by its index page, and finds out what a link leads to.

An index page has no sizes and, from some servers, does not show which names are directories. Both come from
one request for each file: from the name of a directory, servers redirect to the name with a slash.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from podferry.contract.hidden_secrets import hide_query
from podferry.storage.errors.translate import store_error
from podferry.storage.http.page_detection import PAGE_SUFFIXES, is_html
from podferry.storage.object_names import checked_name, is_temporary, join
from podferry.storage.walk import Directory
from podferry.storage.web.address import is_directory_address
from podferry.storage.web.index import WebIndex, comparable_path, directory_shown, read_index
from podferry.storage.web.json_index import read_json_index
from podferry.storage.web.page import JSON_TYPE, WebPage, page_error, redirected
from podferry.storage.web.response import COMPLETE, FileInfo
from podferry.storage.web.site import WebSite


async def list_web_directory(site: WebSite, name: str, url: str, certain: bool) -> Directory:
    """What the page of a directory links to below its own address, without sizes.

    Args:
        site: The server.
        name: Of the directory, relative to the store, for messages.
        url: Of the directory, encoded, without a slash at its end.
        certain: Whether it is known to be a directory, not a file.

    Raises:
        FileNotFoundError: There is no such page.
        NotADirectoryError: It is a file.
        FerryError: The page does not list the directory, not completely, or with names that are invalid.
        What the site raises: The server does not respond as it should.
    """
    index = None
    if not certain and urlsplit(url).path:  # at the root there is no file
        with suppress(FileNotFoundError):  # most servers redirect to the slash, some find nothing without it
            index = _index(site, name, await _page(site, name, url))
    if index is None or not index.names:
        page = await _page(site, name, f"{url}/")
        index = _index(site, name, page)
        if not index.names and (index.skipped or not index.is_listing):
            raise page_error("no index", site.location, name, page, _skipped(index))
    _check_names(site, name, index)
    found = sorted((join(name, unquote(link.rstrip("/"))), link.endswith("/")) for link in index.names)
    members = [each for each in found if each[0] != name and not is_temporary(each[0])]
    return Directory(
        unsized=tuple(member for member, is_directory in members if not is_directory),
        directories=tuple(member for member, is_directory in members if is_directory),
        skipped=index.skipped,
    )


async def web_file_info(site: WebSite, name: str, url: str) -> FileInfo:
    """What the server says about a file.

    Args:
        site: The server.
        name: Of the file, relative to the store.
        url: Of the file, encoded.

    Raises:
        FerryError: The server responds with a page instead of the file, or without it.
        What the site raises.
    """
    info = await site.general.info(url)
    if info.status not in COMPLETE:
        raise store_error("no file", site.location, name, f"HTTP {info.status}")
    if is_directory_address(info.address) and directory_shown(url, info.address):
        return info._replace(is_directory=True)
    if not is_html(info.kind) or (_is_page(url) and _is_same(url, info.address)):
        return info
    try:
        page = await site.page(name, url, sniff=True)
    except NotADirectoryError:
        return info  # only its type is wrong
    index = _index(site, name, page)
    if not index.names and not index.is_listing:
        raise page_error("page", site.location, name, page)
    return info._replace(is_directory=True)


def _check_names(site: WebSite, name: str, index: WebIndex) -> None:
    """Refuse names before they are requested: some servers would resolve them to another directory."""
    for link in index.names:
        text = checked_name(join(name, unquote(link).removesuffix("/")))
        if "\ufffd" in text:
            raise store_error("name", site.location, text, f"{link} is not in UTF-8")


def _skipped(index: WebIndex) -> str:
    return f"it links to {', '.join(map(hide_query, index.skipped[:3]))}" if index.skipped else ""


async def _page(site: WebSite, name: str, url: str) -> WebPage:
    page = await site.page(name, url)
    if _is_page(url) and not is_directory_address(page.address):
        raise NotADirectoryError(errno.ENOTDIR, "a web page", url)
    return page


def _index(site: WebSite, name: str, page: WebPage) -> WebIndex:
    """The index on a page; an error if the page is another one, or only a part of the index."""
    directory = directory_shown(page.url, page.address)
    index = (
        _json_index(site, name, page)
        if page.is_json
        else read_index(page.address, directory or "/", page.text)
    )
    if index.has_login and (directory is None or not index.names):
        raise page_error("login", site.location, name, page)
    if directory is None:
        raise redirected(site.location, name, page)
    next_page = page.next_page or index.next_page
    if next_page:
        raise page_error("pages", site.location, name, page, f"it links to {hide_query(next_page)}")
    return index


def _json_index(site: WebSite, name: str, page: WebPage) -> WebIndex:
    try:
        return read_json_index(page.text)
    except ValueError as error:
        raise page_error(
            "no html", site.location, name, page, f"{JSON_TYPE}, but not as nginx lists files"
        ) from error


def _is_page(url: str) -> bool:
    """Whether a URL names a web page, not a directory."""
    return _path(url).suffix.lower() in PAGE_SUFFIXES


def _is_same(url: str, address: str) -> bool:
    """Whether a page is the requested one; some servers redirect from `page.html` to `page`."""
    return _path(address).name in {_path(url).name, _path(url).stem}


def _path(url: str) -> PurePosixPath:
    return PurePosixPath(comparable_path(urlsplit(url).path))

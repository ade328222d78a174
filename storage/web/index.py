"""Reads an index page of a web server: which files and directories it links to below its own address."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from podferry.contract.lazy_pattern import lazy_pattern
from podferry.storage.network.proxies import DEFAULT_PORTS
from podferry.storage.web.address import address_path
from podferry.storage.web.nginx_markup import NginxMarkup, nginx_markup

if TYPE_CHECKING:
    from podferry.storage.web.markup import WebMarkup

HEADINGS = ("index of", "directory listing", "listing of", "files within")
"""Of the pages that nginx, Apache, lighttpd, Python and others generate, in lower case."""
ERROR_WORDS = (
    "not found",
    "error",
    "404",
    "cannot",
    "too many",
    "denied",
    "forbidden",
    "log in",
    "login",
    "sign in",
)
"""In the heading of a page that is no listing, before the path."""
INDEX_PAGE = lazy_pattern(r"(index|default)\.(html?|xhtml|php|aspx?|jsp|cgi)", re.IGNORECASE)
"""Names of the file that servers show for a directory."""
PARENTS = ("..", "./..")
"""Links of nginx, lighttpd, Caddy and rclone to the directory above. Its address is on many other pages."""
AS_DOT = lazy_pattern("%2e", re.IGNORECASE)
NEXT_PAGE = lazy_pattern(
    r"(^|[&;])((page|p)=0*([2-9]|[1-9]\d)|(offset|start|skip|from)=0*[1-9]|(marker|cursor|after|token)=.)",
    re.IGNORECASE,
)
"""Queries of the page that lead to another part of its listing."""
NEXT_KEYS = lazy_pattern(r"(^|[&;])(marker|cursor|continuation-token)=.", re.IGNORECASE)
"""Queries that do so at another address, too: the store's behind a web server."""
OTHER_SCHEMES = ("javascript", "mailto", "tel", "sms", "about", "blob", "magnet")
"""Of links to no file that have no host."""
PLAIN_NAME = lazy_pattern(r"[A-Za-z0-9_-][A-Za-z0-9._-]*/?")
"""A link to what is directly in the directory, and to nothing else, however URLs are read: most links."""
SORTING = lazy_pattern(
    r"((([CDFMNOSV]|sort|order|by|layout|view|lang|limit|page|p|offset|start|json|zip)(=[\w-]*)?|dir=(asc|desc))"
    r"([&;]|$))*",
    re.IGNORECASE,
)
"""Queries of the page that show the same files: `C=N;O=D` of Apache, `sort=size&order=asc` of Caddy, …"""


class WebIndex(NamedTuple):
    """What an index page says.

    Attributes:
        names: Of files and directories below it, still encoded. A directory's ends with a slash, if the
            server marks directories.
        skipped: Links that may lead to files of the directory, but by another host, with a query, or to the
            index page of a directory that is not linked itself.
        next_page: The link to the rest of a listing that is split into pages, or empty.
        is_listing: Whether the page lists a directory for certain, even if that is empty.
        has_login: Whether it asks for a password.
    """

    names: frozenset[str]
    skipped: tuple[str, ...]
    next_page: str
    is_listing: bool
    has_login: bool


def directory_shown(requested: str, address: str) -> str | None:
    """Path of the directory that a page shows, as `comparable_path`, with a slash at its end.

    Args:
        requested: URL of the directory.
        address: URL of the page, after redirections.

    Returns:
        None if the page is another one: its directory has not the name of the requested one.
    """
    asked, path = (comparable_path(address_path(url)).rstrip("/") for url in (requested, address))
    above, _, last = path.rpartition("/")
    name = asked.rpartition("/")[2]
    if last != name and INDEX_PAGE.fullmatch(last):
        path = above
    return f"{path}/" if path.rpartition("/")[2] == name else None


def read_index(address: str, directory: str, text: str) -> WebIndex:
    """Read a page.

    Args:
        address: URL of the page, after redirections.
        directory: Path of the directory that it shows, from `directory_shown`.
        text: The page.
    """
    page = nginx_markup(text) or _parsed(text)
    links = _Links(address, directory)
    with suppress(ValueError):
        links.base = urljoin(address, page.base)
    for link in page.links:
        with suppress(ValueError):  # no URL: a browser ignores it, too
            links.add(link)
    for frame in page.frames:
        with suppress(ValueError):
            links.add_frame(frame)
    links.skipped.update((label, label) for label in page.more_labels)
    skipped = tuple(sorted(link for name, link in links.skipped if not {name, f"{name}/"} & links.names))
    is_listing = page.is_bare or (not links.has_sibling and _is_empty_listing(page, links, directory))
    return WebIndex(
        frozenset(links.names), skipped, page.next_page or links.next_page, is_listing, page.has_login
    )


def _parsed(text: str) -> WebMarkup:
    from podferry.storage.web.markup import WebMarkup  # noqa: PLC0415 - takes 4 ms; see `nginx_markup`

    page = WebMarkup()
    page.feed(text)
    page.close()
    return page


def _is_empty_listing(page: WebMarkup | NginxMarkup, links: _Links, directory: str) -> bool:
    """Whether a page without names of files lists a directory.

    A script or a form may be what lists the files, but Caddy and rclone have a filter on each page.
    """
    headings = [text for text in page.headings if text.strip()]
    headed = any(_is_heading(text, directory) for text in headings)
    if page.has_script or page.has_form:
        return headed and links.has_parent
    return headed or (links.has_parent and not headings)


def _is_heading(text: str, directory: str) -> bool:
    """Whether a page with this heading lists a directory: it is usual, the name, or ends with the path."""
    heading, path = " ".join(text.split()).casefold().rstrip("/"), directory.rstrip("/").casefold()
    before = heading.removesuffix(path)
    is_path = before != heading and not any(word in before for word in ERROR_WORDS)
    is_name = heading == path.rpartition("/")[2]
    return is_path or is_name or any(known in heading for known in HEADINGS)


def comparable_path(path: str) -> str:
    """A path that is equal for equal addresses, however they are encoded."""
    return "/".join(unquote(part).replace("/", "%2F") for part in path.split("/"))


class _Links:
    """Sorts the links of a page."""

    def __init__(self, address: str, directory: str) -> None:
        self._server, self._directory = _server(urlsplit(address)), directory
        self.base = self._address = address
        self._is_at_directory = comparable_path(address_path(address)) == directory
        self.names = set[str]()
        self.skipped = set[tuple[str, str]]()
        self.next_page = ""
        self.has_parent = self.has_sibling = False

    def add(self, link: str) -> None:
        """Add a link as it is written in the page."""
        if self._is_at_directory and self.base == self._address and PLAIN_NAME.fullmatch(link):
            self.names.add(link)
            return
        self.has_parent |= link.rstrip("/") in PARENTS
        target = urlsplit(urljoin(self.base, AS_DOT.sub(".", link.replace("\\", "/"))))  # as browsers do
        if target.scheme not in DEFAULT_PORTS:
            self._add_other_scheme(target, link)
            return
        encoded, is_here = target.path or "/", _server(target) == self._server
        path, name = comparable_path(encoded), encoded.split("/", self._directory.count("/"))[-1]
        if not is_here or not path.startswith(self._directory):
            self._add_outside(path, link, is_here)
            if is_here and NEXT_KEYS.search(target.query):
                self.next_page = self.next_page or link
        elif name:
            self._add_inside(name, target.query, link)
        else:
            self._add_itself(target.query, link)

    def add_frame(self, link: str) -> None:
        """Add the address of a page that is shown within or instead of this one."""
        target = urlsplit(urljoin(self.base, link))
        is_itself = comparable_path(target.path).rstrip("/") == self._directory.rstrip("/")
        if target.scheme in DEFAULT_PORTS and _server(target) == self._server and not is_itself:
            self.skipped.add((link, link))

    def _add_other_scheme(self, target: SplitResult, link: str) -> None:
        """A link such as `data:1.bin`: the server has not encoded the colon of a name."""
        if target.path and not target.netloc and "," not in link and target.scheme not in OTHER_SCHEMES:
            self.skipped.add((link, link))

    def _add_outside(self, path: str, link: str, is_here: bool) -> None:
        """A link to another directory; on another host, or in other letters, it may be the same one."""
        self.has_sibling |= is_here and self._is_sibling(path)
        directory, path = self._directory.casefold(), path.casefold()
        if directory not in {"/", path} and path.startswith(directory):
            self.skipped.add((link, link))

    def _is_sibling(self, path: str) -> bool:
        """Whether a path is in the directory above; at the top, it may be any page of the site."""
        above = self._directory.rstrip("/").rpartition("/")[0] + "/"
        return above != "/" and path.startswith(above) and path not in {above, self._directory.rstrip("/")}

    def _add_inside(self, name: str, query: str, link: str) -> None:
        above, slash, last = name.rpartition("/")
        if query and last:
            self.skipped.add((name, link))
            return
        self.names.add(name)
        if slash and INDEX_PAGE.fullmatch(last):
            self.skipped.add((above, link))

    def _add_itself(self, query: str, link: str) -> None:
        if NEXT_PAGE.search(query):
            self.next_page = self.next_page or link
        elif not SORTING.fullmatch(query):
            self.skipped.add((link, link))


def _server(url: SplitResult) -> tuple[str, int]:
    """Equal for all spellings of a server; its `http` and `https` are one."""
    default = DEFAULT_PORTS.get(url.scheme)
    return (url.hostname or "").rstrip("."), 0 if url.port in {None, default} else url.port or 0

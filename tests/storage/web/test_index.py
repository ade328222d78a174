"""Index pages, as the common servers and people write them."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from podferry.storage.web.index import WebIndex, directory_shown, read_index

TOP = "http://host:8000/a%20set/"
ODD = '<a href="x%23y%3Fz%20%25%26a%3Ab">x#y?z %&amp;a:b</a>'
PAGES = {
    "nginx": f'<h1>Index of /a set/</h1><pre><a href="../">../</a>\n<a href="sub/">sub/</a> - \n{ODD}</pre>',
    "apache": (
        '<th><a href="?C=N;O=D">Name</a></th><td><a href="/">Parent Directory</a></td>'
        f"<td><A HREF='sub/'>sub/</A></td><td>{ODD}</td><address>Apache at <a href='http://host/'>host</a>"
    ),
    "entities": '<a href="x%23y%3Fz%20%25&amp;a%3Ab">x</a><a href="sub/">sub</a>',
    "python": f'<ul><li><a href="sub/">sub/</a></li><li>{ODD}</li></ul>',
    "rclone": '<a href="./sub/">s</a> <a href="./x%23y%3Fz%20%25&amp;a:b">x</a> <a href="?sort=size">n</a>',
    "paths": '<a href="/a%20set/sub/"></a><a href="/a set/x%23y%3Fz%20%25&a:b"></a><a href="/other/y">',
    "addresses": f'<a href="{TOP}sub/"></a><a href="{TOP}x%23y%3Fz%20%25&a:b"></a><a href="http://host/y">',
    "base": f'<base href="/a%20set/"><base href="/y/"><a href="sub/">s</a>{ODD}',
    "others": f'{ODD}<a href="sub/"><a name="x"><a href="#top"><a href="mailto:x@y"><a href=""><a href="t:">',
}


def read(address: str, page: str) -> WebIndex:
    return read_index(address, directory_shown(address, address) or "", page)


def names(address: str, page: str) -> set[str]:
    return set(read(address, page).names)


@pytest.mark.parametrize("server", PAGES)
def test_names_of_a_servers_index(server: str) -> None:
    found = read(TOP, PAGES[server])
    assert {unquote(name) for name in found.names} == {"sub/", "x#y?z %&a:b"}
    assert not found.skipped
    assert not found.next_page


def test_links_further_down_keep_their_path() -> None:
    assert names("http://host/", '<a href="a/b"><a href="c/d/">') == {"a/b", "c/d/"}


def test_a_page_without_its_slash_links_next_to_itself() -> None:
    assert names("http://host/set", '<a href="a">') == set()
    assert names("http://host/set", '<a href="set/a"><a href="/set/b">') == {"a", "b"}


def test_a_page_may_say_what_its_links_are_relative_to() -> None:
    assert names("http://host/set/", '<base href="/"><a href="set/a"><a href="b">') == {"a"}


def test_no_links_are_no_names() -> None:
    assert names(TOP, "") == set()
    assert names(TOP, "<p>http://host:8000/a%20set/x is no link") == set()


@pytest.mark.parametrize(
    ("host", "link"),
    [
        ("http://host", "http://host:80/set/a"),
        ("http://host:80", "//HOST/set/a"),
        ("https://host", "http://Host/set/a"),
        ("http://host:8000", "HTTP://user@host:8000/set/a"),
        ("http://host", "..\\set\\a"),
        ("http://host", "a#part"),
    ],
)
def test_other_spellings_of_the_same_link(host: str, link: str) -> None:
    found = read(f"{host}/set/", f'<a href="{link}">')
    assert (found.names, found.skipped) == ({"a"}, ())


WITH_QUERY = ("a?download=1", "?dir=sub", "index.php?path=/set/sub", "?C=N&file=a")


@pytest.mark.parametrize(
    "link", [*WITH_QUERY, "http://other/set/a", "http://host:8080/set/a", "/Set/a", "https://cdn/set/sub/"]
)
def test_links_that_may_be_files_are_named(link: str) -> None:
    page = f'<base href="http://["><a href="inde">b</a><a href="{link}">'
    assert read("http://host/set/", page).skipped == (link,)


SORTING = (
    "?C=N;O=D",
    "?N=D",
    "?sort=name&order=desc",
    "?dir=asc",
    "?zip",
    "/set/?sort=size",
    "./?order=asc",
    "?page=1",
    "sub/?C=M",
)
ELSEWHERE = ("%2E%2e/", "http://other/", "http://other/b", "/", "/x", "#b", "b?preview")
NO_ADDRESSES = ("javascript:x()", "mailto:set/x@host", "http://[", "http://host:x/set/a")


@pytest.mark.parametrize("link", [*SORTING, *ELSEWHERE, *NO_ADDRESSES])
def test_links_that_are_not_missed(link: str) -> None:
    found = read("http://host/set/", f'<a href="b">b</a><a href="sub/">s</a><a href="{link}">')
    assert (found.names, found.skipped, found.next_page) == ({"b", "sub/"}, (), "")


@pytest.mark.parametrize("link", ["sub/index.html", "a/b/Default.htm"])
def test_index_pages_further_down_are_files_whose_links_are_not_followed(link: str) -> None:
    found = read("http://host/set/", f'<a href="{link}">')
    assert (found.names, found.skipped) == ({link}, (link,))
    assert read("http://host/set/", f'<a href="{link}"><a href="{link.rpartition("/")[0]}/">').skipped == ()


@pytest.mark.parametrize(
    ("part", "link"),
    [
        ('<a href="?C=N&O=D&P=2">2</a>', "?C=N&O=D&P=2"),
        ('<a href="/?prefix=set/&marker=b">next</a>', "/?prefix=set/&marker=b"),
        ('<link rel="next" href="/elsewhere/2">', "/elsewhere/2"),
        ('<a rel="nofollow Next" href="/set/2.html">', "/set/2.html"),
    ],
)
def test_other_links_to_the_rest_of_a_listing(part: str, link: str) -> None:
    assert read("http://host/set/", f'<a href="b">b</a>{part}').next_page == link


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ('<iframe src="list2.html"></iframe>', "list2.html"),
        ('<frame src="/list.html">', "/list.html"),
        ('<meta http-equiv="Refresh" content="0; URL=\'real/\'">', "real/"),
        ('<button onclick="more()"> Load\nmore </button>', "Load more"),
        ('<a href="#" onclick="p(2)">Next »</a> Page 1 of 3', "Next »"),
        ('<a href="javascript:p(2)"><b>Next</b></a>', "Next"),
        ('<a href="data:1.bin">data:1.bin</a>', "data:1.bin"),
    ],
)
def test_what_may_have_more_names_is_named(part: str, named: str) -> None:
    found = read("http://host/set/", f'<a href="b">b</a>{part}<a href="c">c</a>')
    assert (found.names, found.skipped, found.next_page) == ({"b", "c"}, (named,), "")


@pytest.mark.parametrize(
    "part",
    [
        '<meta http-equiv="refresh" content="30">',
        '<meta http-equiv="refresh" content="30; url=/set/">',
        '<meta name="viewport" content="width=device-width">',
        "<iframe></iframe>",
        '<iframe src="https://ads.example.com/x"></iframe>',
        "<button>Sort</button>",
        '<a href="next">Next</a>',
        '<a href="data:text/plain,x">x</a>',
        '<a href="ftp://host/set/">x</a>',
    ],
)
def test_what_has_no_more_names(part: str) -> None:
    found = read("http://host/set/", f'<a href="b">b</a>{part}')
    assert (found.names - {"next"}, found.skipped, found.next_page) == ({"b"}, (), "")


@pytest.mark.parametrize("link", ["?page=2", "?sort=name&page=12", "/set/?offset=100", "?marker=b"])
def test_a_listing_on_several_pages(link: str) -> None:
    assert read("http://host/set/", f'<a href="b">b</a><a href="{link}">more</a>').next_page == link


EMPTY = {
    "nginx": '<title>Index of /set/</title><h1>Index of /set/</h1><hr><pre><a href="../">../</a>\n</pre><hr>',
    "apache": '<h1>Index of /set</h1><a href="?C=N;O=D">Name</a> <a href="/">Parent Directory</a>',
    "python": "<title>Directory listing for /set/</title><ul>\n</ul>",
    "rclone": '<title>/set</title><a href="..">Go up</a>',
    "caddy": "<title>set/</title><a href='../'>Up</a>",
    "iis": '<title>host - /set/</title><H1>host - /set/</H1><A HREF="/">[To Parent Directory]</A>',
    "caddy with filter": "<title>set</title><a href='..'>Up</a><input id='filter'><script>filter()</script>",
    "rclone with filter": '<title>/set</title><a href="..">Go up</a><input><script>filter()</script>',
    "without heading": '<a href="../">..</a>',
    "go": '<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n</pre>\n',
}


@pytest.mark.parametrize("server", EMPTY)
def test_the_index_of_an_empty_directory(server: str) -> None:
    found = read("http://host/set/", EMPTY[server])
    assert found.is_listing
    assert not found.names


OTHER_PAGES = {
    "login": '<title>Log in to /settings</title><form><input name="p" type="PassWord"></form>',
    "application": '<title>App</title><div id="root"></div><pre></pre><script>start()</script>',
    "home": '<h1>Welcome</h1><a href="/">Home</a>',
    "readme": "<h1>About this data</h1><p>Version 3</p>",
    "error": '<h1>Not found</h1><a href="/set/">Back</a>',
    "error with path": "<title>Page not found: /set/sub/</title><h1>/set/sub is not here</h1>",
    "login by name": '<title>Sign in</title><form><input name="user"></form><a href="../">Back</a>',
    "login without title": '<form><input name="user"></form><a href="../">Back</a>',
    "login with path": '<title>Sign in to /set/sub</title><form></form><a href="../">Back</a>',
    "too many requests": '<title>Error</title><h1>Too many requests</h1><a href="../">Parent</a>',
    "another login": '<title>Login</title><a href="../">Up</a>',
    "its parent": '<h1>Index of /set/</h1><a href="../"><a href="/set/a">a</a><a href="/set/sub/">sub</a>',
    "script": "<title>Index of /set/sub/</title><script>show([{name: 'a'}])</script>",
}


@pytest.mark.parametrize("page", OTHER_PAGES)
def test_pages_that_list_nothing(page: str) -> None:
    found = read("http://host/set/sub/", OTHER_PAGES[page])
    assert not found.is_listing
    assert found.has_login == (page == "login")


@pytest.mark.parametrize(
    ("requested", "address", "path"),
    [
        ("http://h/a%20b", "http://h/a b/", "/a b/"),
        ("http://h/d/", "https://www.h/d/", "/d/"),
        ("http://h/d/", "http://mirror/pub/d/", "/pub/d/"),
        ("http://h/d/", "http://h/d/index.html", "/d/"),
        ("http://h/index.html", "http://h/index.html", "/index.html/"),
        ("http://h", "http://h/", "/"),
        ("http://h/d/", "http://h/login?next=/d/", None),
        ("http://h/d/", "http://h/", None),
        ("http://h/", "http://h/pub/", None),
        ("http://h/d/", "http://h/d/login", None),
    ],
)
def test_which_directory_a_page_shows(requested: str, address: str, path: str | None) -> None:
    assert directory_shown(requested, address) == path


@pytest.mark.parametrize("link", ["a.bin", "sub/", "0", "index.html", "a-b_c.1/", "http", "-"])
def test_plain_names_are_those_of_any_link(link: str) -> None:
    """They are taken as they are, where no other base changes what they lead to."""
    page = f'<a href="{link}">x</a>'
    assert read_index("http://h/set/", "/set/", page) == read_index(
        "http://h/set/", "/set/", page.replace('"', '"./', 1)
    )
    assert read_index("http://h/set/", "/set/", f'<base href="/other/">{page}').names == frozenset()
    assert read_index("http://h/set/index.html", "/set/", page).names == {link}

"""What the parser collects from a page."""

from __future__ import annotations

from podferry.storage.web.markup import WebMarkup


def parsed(text: str) -> WebMarkup:
    page = WebMarkup()
    page.feed(text)
    page.close()
    return page


def test_links_and_headings() -> None:
    page = parsed('<base href="/x/"><title>Index\n of</title><A HREF=a>a</A><a name="b"><h1>Files</h1>')
    assert (page.base, page.links) == ("/x/", ["a"])
    assert page.headings == ["Index\n of", "Files"]


def test_forms_and_scripts() -> None:
    page = parsed('<form><input type="PASSWORD"></form><script>a</script>')
    assert (page.has_form, page.has_login, page.has_script) == (True, True, True)
    page = parsed("<pre></pre>")
    assert (page.has_form, page.has_login, page.has_script, page.is_bare) == (False, False, False, True)


def test_other_pages() -> None:
    page = parsed('<link rel=next href=2><iframe src=3></iframe><meta http-equiv=refresh content="1;url=4">')
    assert (page.next_page, page.frames) == ("2", ["3", "4"])


def test_labels_of_what_shows_more() -> None:
    page = parsed(
        '<button> Load  <b>more</b> </button><button>Sort</button><a href="#">Next</a><a href=x>Next</a>'
    )
    assert page.more_labels == ["Load more", "Next"]

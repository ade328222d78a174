"""Parses what a WebDAV server says about a directory and its members, as it arrives. Pure.

Source: RFC 4918, sections 13 to 15. A document type is refused: entities may grow without end.
"""

from __future__ import annotations

from typing import NoReturn
from xml.parsers import expat

import msgspec

MULTISTATUS, RESPONSE, HREF = "DAV: multistatus", "DAV: response", "DAV: href"
PROPSTAT, STATUS = "DAV: propstat", "DAV: status"
LENGTH, TAG, MODIFIED = "DAV: getcontentlength", "DAV: getetag", "DAV: getlastmodified"
COLLECTION = "DAV: collection"
PROPERTIES = (LENGTH, TAG, MODIFIED)
JUNK = expat.errors.codes[expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT]
MAX_TEXT = 8192
"""Characters of a value; the longest is a path."""
QUERY = (
    b'<?xml version="1.0" encoding="utf-8"?><propfind xmlns="DAV:"><prop>'
    b"<resourcetype/><getcontentlength/><getetag/><getlastmodified/></prop></propfind>"
)
"""The body of a request for what `Resource` has."""


class Resource(msgspec.Struct, frozen=True):
    """A file or a directory.

    Attributes:
        href: Its address: a path or a URL, encoded.
        is_directory: Whether it is a collection.
        size: Bytes of a file; None if the server does not say.
        tag: Its ETag as a response has it, or empty.
        modified: Its time of change as the server writes it, or empty.
        status: HTTP status, if the server has one instead of properties; 0 otherwise.
    """

    href: str
    is_directory: bool = False
    size: int | None = None
    tag: str = ""
    modified: str = ""
    status: int = 0


class MultistatusError(ValueError):
    """The document is no multistatus."""


class BrokenOff(MultistatusError):
    """Other text follows the document: the server has failed while it looked at the members.

    rclone does so when a file vanishes meanwhile.
    """


class MultistatusParser:
    """Takes the document in pieces."""

    def __init__(self) -> None:
        self.resources: list[Resource] = []
        self._parser = expat.ParserCreate(namespace_separator=" ")
        self._parser.buffer_text = True
        self._parser.StartDoctypeDeclHandler = self._refuse
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end
        self._parser.CharacterDataHandler = self._text
        self._path: list[str] = []
        self._characters = ""
        self._response: dict[str, str] = {}
        self._properties: dict[str, str] = {}

    def feed(self, data: bytes) -> None:
        """Take a piece.

        Raises:
            BrokenOff: It follows the end of one.
            MultistatusError: It is not part of a multistatus.
        """
        self._parse(data, final=False)

    def close(self) -> list[Resource]:
        """All resources; raises `MultistatusError` if the document is not complete."""
        self._parse(b"", final=True)
        return self.resources

    def _parse(self, data: bytes, *, final: bool) -> None:
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            kind = BrokenOff if error.code == JUNK and self.resources else MultistatusError
            raise kind(f"XML: {expat.ErrorString(error.code)}, line {error.lineno}") from error

    @staticmethod
    def _refuse(name: str, *_: object) -> NoReturn:
        raise MultistatusError(f"a document type: {name[:40]!a}")

    def _start(self, name: str, _: dict[str, str]) -> None:
        if not self._path and name != MULTISTATUS:
            raise MultistatusError(f"the element {name.replace('DAV: ', '')[:40]!a}, not multistatus")
        self._path.append(name)
        self._characters = ""
        if name == RESPONSE:
            self._response = {}
        elif name == PROPSTAT:
            self._properties = {}
        elif name == COLLECTION:
            self._properties[COLLECTION] = "yes"

    def _text(self, data: str) -> None:
        if len(self._characters) + len(data) > MAX_TEXT:
            raise MultistatusError(f"a value of more than {MAX_TEXT} characters")
        self._characters += data

    def _end(self, name: str) -> None:
        self._path.pop()
        above, text = self._path[-1] if self._path else "", self._characters.strip()
        self._characters = ""
        if name in PROPERTIES:
            self._properties[name] = text
        elif above == RESPONSE and name in {HREF, STATUS}:
            self._response.setdefault(name, text)
        elif above == PROPSTAT and name == STATUS:
            self._properties[STATUS] = text
        elif name == PROPSTAT:
            self._take_properties()
        elif name == RESPONSE:
            self.resources.append(self._resource())

    def _take_properties(self) -> None:
        """Those that exist: a server lists the others with another status, such as 404."""
        if _status(self._properties.pop(STATUS, "")) // 100 == 2:
            self._response.update(self._properties)

    def _resource(self) -> Resource:
        found = self._response
        if HREF not in found:
            raise MultistatusError("a response without an address")
        length = found.get(LENGTH, "")
        return Resource(
            found[HREF],
            COLLECTION in found,
            int(length) if length.isascii() and length.isdecimal() and len(length) < 20 else None,
            _quoted(found.get(TAG, "")),
            found.get(MODIFIED, ""),
            _status(found[STATUS]) if STATUS in found else 0,
        )


def _status(line: str) -> int:
    code = line.split(" ")[1] if line.count(" ") else ""
    return int(code) if code.isascii() and code.isdecimal() else 0


def _quoted(tag: str) -> str:
    """An ETag as responses have it: some servers leave the quotation marks out of the property."""
    return tag if not tag or tag.endswith('"') else f'"{tag}"'

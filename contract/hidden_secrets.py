"""Hides passwords, tokens and signatures in texts that quote what a user has written.

A pod's refusal reaches events, logs and annotations, which more people read than a Secret.
"""

from __future__ import annotations

import re

from podferry.contract.lazy_pattern import lazy_pattern

HIDDEN = "***"
USER_INFO = lazy_pattern(r"(?<![^\s/'\"(])([^\s/'\":@]*):[^\s/'\"]*@(?!sha256:)")
"""A user and a password before a host; an image's tag has a digest behind it. Anchored at the start of a
word, so that a hostile text takes no longer than its length."""
LONG_USER_INFO = lazy_pattern(r"://([^\s/'\":@]*):(?!\d+/)[^\s'\"@]{0,200}@")
"""A password with a slash, which ends the host for a parser. What is longer is no password."""
WEB_USER = lazy_pattern(r"\b((?:https?|webdavs?)://)[^\s/'\"]+@")
"""Engines of web servers take no user from a URI, so this is a token."""
TYPED_PASSWORD = lazy_pattern(
    r"\A(\s*(?>(?:[a-z][a-z0-9+.-]*:/{1,2})?))([^\s/'\":@\[]*):(?!\d+(?:/|\Z)).*@", re.IGNORECASE | re.DOTALL
)
"""A location with a password: up to the last `@`, since a password may have any character. A number before
a slash is a port."""
PARAMETER = lazy_pattern(r"([?&#;])([\w.-]+)=([^&#\s'\")]+)")
QUERY_PART = lazy_pattern(r"([^&;=]+=)?([^&;]*)")
SHORT_NUMBER = lazy_pattern(r"\d{0,6}")
"""The value of a parameter that is no secret, such as the number of a page."""
SECRET_NAME = lazy_pattern("sig|token|pass|pwd|secret|key|credential|auth|jwt", re.IGNORECASE)


def hide_secrets(text: str) -> str:
    """A text without the passwords, tokens and signatures of URIs."""
    text = LONG_USER_INFO.sub(rf"://\1:{HIDDEN}@", text)
    text = WEB_USER.sub(rf"\1{HIDDEN}@", USER_INFO.sub(rf"\1:{HIDDEN}@", text))
    return PARAMETER.sub(lambda found: f"{found[1]}{found[2]}={shown_value(found[2], found[3])}", text)


def hide_query(url: str) -> str:
    """A URL that a server has written, without the values of its query: any of them may be a signature."""
    address, mark, query = url.partition("#")[0].partition("?")
    return hide_secrets(address) + (mark and query and mark + QUERY_PART.sub(_hidden_part, query))


def _hidden_part(found: re.Match[str]) -> str:
    name, value = found[1] or "", found[2]
    is_shown = SHORT_NUMBER.fullmatch(value) and not is_secret(name)
    return f"{name}{value if is_shown else HIDDEN}"


def has_password(location: str) -> bool:
    """Whether a location has a password, also one with characters that end the host for a parser."""
    return TYPED_PASSWORD.match(location) is not None


def hide_in_location(text: str) -> str:
    """A location as somebody has typed it, without its secrets."""
    return hide_secrets(TYPED_PASSWORD.sub(rf"\1\2:{HIDDEN}@", text))


def is_secret(name: str) -> bool:
    """Whether a parameter's name is that of a secret."""
    return SECRET_NAME.search(name) is not None


def shown_value(name: str, value: str) -> str:
    """The value of a parameter, hidden if it is a secret; so is one behind a semicolon, with what follows."""
    if is_secret(name):
        return HIDDEN
    parts = value.split(";")
    for index, part in enumerate(parts):
        inner, equals, _ = part.partition("=")
        if index and equals and is_secret(inner):
            return ";".join((*parts[:index], f"{inner}={HIDDEN}"))
    return value

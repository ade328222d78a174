"""Names of files, as a server of SMB has them.

Nine characters cannot be in a name there. As Linux's own client and macOS do, they are sent as characters of
Unicode's private use area, so that every name can be written and read again, and shows in such a mount as it
is. Source: Linux, fs/smb/client/cifs_unicode.h, "SFM".
"""

from __future__ import annotations

import re

from podferry.contract.errors import InvalidSpec

PRIVATE = {
    '"': "\uf020",
    "*": "\uf021",
    ":": "\uf022",
    "<": "\uf023",
    ">": "\uf024",
    "?": "\uf025",
    "\\": "\uf026",
    "|": "\uf027",
}
LAST_SPACE, LAST_PERIOD = "\uf028", "\uf029"
"""At the end of a name, where Windows would drop a space or a period."""
TO_PRIVATE = str.maketrans(PRIVATE)
FROM_PRIVATE = str.maketrans(
    {private: plain for plain, private in PRIVATE.items()} | {LAST_SPACE: " ", LAST_PERIOD: "."}
)
TAKEN = re.compile("[\uf001-\uf029]")
"""A name that has one of these itself could not be distinguished from another."""
RESERVED = re.compile(r"(CON|PRN|AUX|NUL|CLOCK\$|COM[1-9]|LPT[1-9])(\..*)?", re.IGNORECASE)
"""Windows' devices, with any suffix. Source: Microsoft, "Naming Files, Paths, and Namespaces"."""
MAYBE_MANGLED = re.compile(r"[^a-z.~]{4,6}~[0-9A-Z]{1,2}(\.[^a-z.]{1,3})?")
"""What Samba makes of a name that Windows could not have (its methods `hash2` and `hash`); but also the plain
name of an old file."""


def server_name(part: str) -> str:
    """One component of a name, as it is sent.

    Raises:
        InvalidSpec: No share can have it.
    """
    if TAKEN.search(part):
        raise _refused(part, "has a character that stands for a reserved one (U+F001 to U+F029)")
    if RESERVED.fullmatch(part):
        raise _refused(part, "is the name of a device of Windows")
    sent = part.translate(TO_PRIVATE)
    if sent.endswith((" ", ".")):
        sent = sent[:-1] + (LAST_SPACE if sent[-1] == " " else LAST_PERIOD)
    return sent


def _refused(part: str, why: str) -> InvalidSpec:
    return InvalidSpec.of(f"a share cannot have this name: it {why}", ascii(part), "Choose another name")


def server_path(name: str) -> str:
    r"""A name with slashes as the server's path with backslashes."""
    return "\\".join(map(server_name, name.split("/"))) if name else ""


def plain_name(sent: str) -> str:
    """The name of a file of which a server sends this component."""
    return sent.translate(FROM_PRIVATE)


def may_be_mangled(sent: str) -> bool:
    """Whether the name may be one that the server has made up for another."""
    return MAYBE_MANGLED.fullmatch(sent) is not None


def last_component(path: str) -> str:
    """The last component of a server's path."""
    return path.rpartition("\\")[2]

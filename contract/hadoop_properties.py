"""Reads the properties in a configuration file of Hadoop, such as `core-site.xml`."""

from __future__ import annotations


def hadoop_properties(text: str) -> dict[str, str]:
    """The properties by name. Raises `ValueError` if the text is no XML."""
    from xml.etree import ElementTree as ET  # noqa: PLC0415 - loaded by every command otherwise

    try:
        root = ET.fromstring(text)  # noqa: S314 - the user's own configuration
    except ET.ParseError as error:
        raise ValueError(str(error)) from error
    pairs = ((each.findtext("name"), each.findtext("value")) for each in root.iter("property"))
    return {key.strip(): value.strip() for key, value in pairs if key and value is not None}

import socket

from aiohttp import ClientPayloadError, ServerDisconnectedError
from aiohttp.http_exceptions import BadHttpMessage, ContentLengthError
from obstore import exceptions as obstore

from podferry.storage.errors.vendor_fields import obstore_fields, vendor_fields_of


def test_text_in_another_form_is_ignored():
    signal = obstore_fields(obstore.GenericError("404 NoSuchBucket status: 404 <Code>not/a code</Code>"))
    assert (signal.status, signal.code) == (0, "")


def test_a_status_that_the_server_did_not_send_is_none():
    """aiohttp's errors about what it cannot parse have the status 400."""
    error = ClientPayloadError("not completed")
    error.__cause__ = ContentLengthError("not enough data")
    assert vendor_fields_of(error).kind == "cut"
    for found in (vendor_fields_of(error), vendor_fields_of(BadHttpMessage("a field"))):
        assert (found.status, found.reason) == (0, "response not readable")


def test_reasons_of_names_and_of_closed_connections():
    error = OSError("Cannot connect")
    error.__cause__ = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
    assert vendor_fields_of(error).reason == "name or service not known"
    assert vendor_fields_of(ServerDisconnectedError()).reason == "connection broken"

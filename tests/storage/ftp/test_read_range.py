import socket
import threading

import pytest

from podferry.contract.uri import parse_uri
from podferry.storage.errors.translate import StoreLocation
from podferry.storage.ftp.read_range import TIMED_BYTES, ReadRange

LOCATION = StoreLocation(parse_uri("ftp://host/d"))


class Session:
    """Counts how often its time is renewed."""

    renewed = 0

    def renew(self):
        self.renewed += 1

    def check_time(self):
        """There is time."""


@pytest.mark.parametrize(("total", "expected"), [(TIMED_BYTES - 1, 0), (2 * TIMED_BYTES + 5, 2)])
def test_a_long_transfer_has_the_time_of_a_request_for_each_part(total, expected):
    received, session = [], Session()

    def receive(data, position):
        assert position == sum(received)
        received.append(len(data))

    reading = ReadRange(LOCATION, "a", (0, total, "tag", total), receive)
    data, server = socket.socketpair()
    sending = threading.Thread(target=lambda: (server.sendall(bytes(total)), server.close()))
    sending.start()
    with data:
        reading._pass_on(session, data, total, receive)
    sending.join()
    assert (sum(received), session.renewed) == (total, expected)

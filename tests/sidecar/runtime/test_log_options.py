import io

import pytest

from podferry.sidecar.runtime.log_options import default_format, local_level

POD = {"KUBERNETES_SERVICE_HOST": "10.96.0.1"}


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("environ", "stream", "log_format"),
    [
        ({}, io.StringIO(), "text"),
        ({}, Terminal(), "text"),
        (POD, io.StringIO(), "json"),
        (POD, Terminal(), "text"),
        ({**POD, "PODFERRY_LOG_FORMAT": "text"}, io.StringIO(), "text"),
        ({"PODFERRY_LOG_FORMAT": "json"}, Terminal(), "json"),
    ],
)
def test_people_get_text_and_pods_json_unless_requested(environ, stream, log_format):
    assert default_format(environ, stream) == log_format


@pytest.mark.parametrize(
    ("environ", "level"), [({}, "warning"), (POD, "info"), ({**POD, "PODFERRY_LOG_LEVEL": "error"}, "error")]
)
def test_next_to_a_command_only_what_is_wrong_is_logged(environ, level):
    assert local_level(environ) == level

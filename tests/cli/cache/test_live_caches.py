import json
import subprocess
import sys

from podferry.cli.cache.live_caches import LiveCaches, no_cache
from podferry.cli.live_cluster import LiveCluster

ASK = """
import sys, threading
from podferry.cli.cache.live_caches import LiveCaches
from podferry.cli.live_cluster import LiveCluster
late = []
def note(frame, event, _):
    if frame.f_globals.get("__name__", "").startswith("msgspec"):
        late.append(frame.f_code.co_name)
live = LiveCaches(LiveCluster(sys.argv[1]))
threading.setprofile(note)
found = live.reports(None, None)
assert len(found) == 2 and not late, (found, late)
"""


def test_a_name_and_a_namespace_select(api):
    [report] = LiveCaches(LiveCluster(str(api.kubeconfig))).reports("team", "digits")
    assert (report.name, report.namespace, report.readers) == ("digits", "team", ())
    assert api.asked[0] == "GET /api/v1/namespaces/team/services?labelSelector=podferry.io%2Fcache%3Ddigits"


def test_what_is_not_there_is_named():
    assert "there is no cache digits in the namespace team" in str(no_cache("team", "digits"))
    assert "there is no cache in the cluster" in str(no_cache(None, None))


def test_threads_collect_no_fields_of_classes(api):
    # Two that do so at once end the process: a segmentation fault of `podferry cache status`.
    refusal = {"problems": [{"what": "busy"}]}
    api.holders["GET team-0 /v1/status"] = lambda _: (503, json.dumps(refusal).encode())
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(api.kubeconfig)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr

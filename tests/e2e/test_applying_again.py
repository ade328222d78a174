"""What GitOps does: the same manifests again and again, by either kind of apply."""

from __future__ import annotations

import json

from tests.cluster.process import wait_until
from tests.e2e.install import OVERLAY
from tests.e2e.site import Site


def entries(site: Site) -> list[str]:
    """The names of the entries that send pods to the webhook, those of the policy's rules among them."""
    found = json.loads(site.cluster.kubectl("get", "mutatingwebhookconfiguration", "podferry", "-o", "json"))
    return [one["name"] for one in found["webhooks"]]


def test_the_entries_of_rules_stay_and_nothing_differs(site: Site) -> None:
    wait_until("the rules to be registered", lambda: "everything.rules.podferry.io" in entries(site), 90)
    before = entries(site)
    for words in ((), ("--server-side",)):
        site.cluster.kubectl("apply", *words, "-k", str(OVERLAY))
        assert entries(site) == before
        assert site.cluster.kubectl("diff", *words, "-k", str(OVERLAY)) == ""  # it exits with 1 otherwise

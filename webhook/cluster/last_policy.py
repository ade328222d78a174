"""The last valid policy, kept in a ConfigMap of the webhook's own.

A policy may be invalid when a replica starts: applied while no replica ran to validate it, or written for
another version. The replica then starts with the last valid one.
"""

from __future__ import annotations

import structlog

from podferry.contract.errors import FerryError
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.policy.policy_review import POLICY_KEY

log = structlog.get_logger(__name__)


class LastPolicy:
    """One replica's view of the ConfigMap `name`, which exists, but may be empty."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._kept: str | None = None
        what = "the last valid policy cannot be kept"
        self._failures = FailureLog(log, "warning", what, config_map=name)

    async def read(self) -> str | None:
        """The text that was kept, or None."""
        try:
            return ((await self._cluster.config_map(self._name)).get("data") or {}).get(POLICY_KEY)
        except FerryError as error:
            self._failures.failed(error)
            return None

    async def keep(self, text: str) -> None:
        """Keep the text of a valid policy, unless this replica has done so; without success, try again later.

        A replica writes a policy once, so one whose file is older does not undo what another has written.
        """
        if text == self._kept:
            return
        try:
            found = await self._cluster.config_map(self._name)
            is_kept = (found.get("data") or {}).get(POLICY_KEY) == text
            if is_kept or await self._cluster.replace_config_map({**found, "data": {POLICY_KEY: text}}):
                self._kept = text
            self._failures.succeeded()
        except FerryError as error:
            self._failures.failed(error)

"""The policy's ConfigMap, read from the API server.

The kubelet updates its mounted file up to a minute later, on each node at another time. Until then replicas
would decide by different policies, and one could undo the other's webhook entries.
"""

from __future__ import annotations

import structlog

from podferry.contract.errors import FerryError
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.policy.policy_review import POLICY_KEY

log = structlog.get_logger(__name__)


class LivePolicy:
    """One replica's view of the ConfigMap `name`."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._text: str | None = None
        what = "the policy's ConfigMap cannot be read; its file is up to a minute late"
        self._failures = FailureLog(log, "warning", what, config_map=name)

    async def read(self) -> str | None:
        """The policy's text now; if it cannot be read, what was read last, or None.

        What was read last is never older than the file.
        """
        try:
            data = (await self._cluster.config_map(self._name)).get("data") or {}
            self._text = data.get(POLICY_KEY, self._text)
            self._failures.succeeded()
        except FerryError as error:
            self._failures.failed(error)
        return self._text

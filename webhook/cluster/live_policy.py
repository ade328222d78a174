"""The policy's ConfigMap, read from the API server.

The kubelet updates its mounted file up to a minute later, on each node at another time. Until then replicas
would decide by different policies, and one could undo the other's webhook entries.
"""

from __future__ import annotations

import structlog

from podferry.contract.errors import FerryError
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.policy.policy_review import POLICY_KEY

log = structlog.get_logger(__name__)


class LivePolicy:
    """One replica's view of the ConfigMap `name`."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self._cluster, self._name = cluster, name
        self._text: str | None = None
        self._problems: tuple[str, ...] = ()

    async def read(self) -> str | None:
        """The policy's text now; if it cannot be read, what was read last, or None.

        What was read last is never older than the file.
        """
        try:
            data = (await self._cluster.config_map(self._name)).get("data") or {}
            self._text, self._problems = data.get(POLICY_KEY, self._text), ()
        except FerryError as error:
            self._report(tuple(str(problem) for problem in error.problems))
        return self._text

    def _report(self, problems: tuple[str, ...]) -> None:
        if problems != self._problems:
            what = "the policy's ConfigMap cannot be read; its file is up to a minute late"
            log.warning(what, config_map=self._name, problems=problems)
        self._problems = problems

"""Keeps the webhook configuration in step with the policy's rules."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable

import structlog

from podferry.contract.errors import FerryError, Unavailable
from podferry.webhook.cluster.failure_log import FailureLog
from podferry.webhook.cluster.kube import Cluster
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.rule_webhooks import with_rule_webhooks

log = structlog.get_logger(__name__)

MAX_CONFLICTS = 5
"""Conflicts after which to try again later: the replicas write the same, and rotation writes rarely."""
POLL_SECONDS = 5.0
"""Seconds between checks of the policy."""
POLLS_PER_CHECK = 12
"""Checks of the policy for one of the configuration, which somebody may have applied again."""


class RuleRegistration:
    """The rules' entries in a MutatingWebhookConfiguration.

    Replicas render the same entries from the same policy. While a changed policy has reached only one of
    them, each may write its own: a pod that is sent is decided by the policy of its replica.
    """

    def __init__(self, cluster: Cluster, configuration: str, policy: Callable[[], Policy]) -> None:
        """Name the MutatingWebhookConfiguration; `policy` returns the current policy."""
        self._cluster, self._configuration, self._policy = cluster, configuration, policy
        self._failures = FailureLog(log, "error", "rules cannot be registered")

    async def refresh(self) -> bool:
        """Write the entries if they are not the policy's; return whether they were written.

        Raises:
            NotFound, AccessDenied, Unavailable: They cannot be read or written.
        """
        for _ in range(MAX_CONFLICTS):
            found = await self._cluster.mutating_webhooks(self._configuration)
            wanted = with_rule_webhooks(found.webhooks, self._policy())
            if wanted == found.webhooks:
                return False
            if await self._cluster.replace_mutating_webhooks(self._configuration, found.version, wanted):
                log.info("rules registered", webhooks=[one["name"] for one in wanted])
                return True
        what = f"the webhook configuration {self._configuration} keeps changing"
        raise Unavailable.of(what, f"{MAX_CONFLICTS} conflicts")

    async def run(self, seconds: float = POLL_SECONDS) -> None:
        """Refresh when the policy has changed, and at times. If it fails, log it and try again."""
        registered: Policy | None = None
        for poll in itertools.count():
            policy = self._policy()
            if policy != registered or poll % POLLS_PER_CHECK == 0:
                registered = policy if await self._refreshed() else None
            await asyncio.sleep(seconds)

    async def _refreshed(self) -> bool:
        """Whether the configuration is the policy's; if not, the reason is logged, once."""
        try:
            await self.refresh()
        except FerryError as error:
            self._failures.failed(error)
            return False
        self._failures.succeeded()
        return True

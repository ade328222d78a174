"""The policy file: reloaded when it changes; the last valid policy stays in use."""

from __future__ import annotations

from pathlib import Path

import structlog

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy import Policy
from podferry.webhook.policy_yaml import read_policy

log = structlog.get_logger(__name__)


class PolicyFile:
    """A policy on disk; in a pod, a file of a ConfigMap.

    Attributes:
        policy: The last valid policy.
        problems: Problems of the current file; empty if it is valid.
    """

    def __init__(self, path: Path) -> None:
        """Read the file. Raises `InvalidSpec` if it is invalid."""
        self._path = path
        self._text = self._read()
        self.policy: Policy = read_policy(self._text)
        self.problems: tuple[str, ...] = ()

    def refresh(self) -> bool:
        """Reload a changed file, unless it is invalid; return whether the policy changed."""
        try:
            text = self._read()
            if text == self._text:
                return False
            self._text = text
            policy = read_policy(text)
        except InvalidSpec as error:
            self._report(error)
            return False
        changed = policy != self.policy
        self.policy, self.problems = policy, ()
        log.info("policy read", digest=policy.digest, changed=changed)
        return changed

    def _report(self, error: InvalidSpec) -> None:
        problems = tuple(str(problem) for problem in error.problems)
        if problems != self.problems:
            log.error(
                "invalid policy; keeping the last valid one", kept=self.policy.digest, problems=problems
            )
        self.problems = problems

    def _read(self) -> str:
        # Compared by content: a ConfigMap's file is a link that can change without a new modification time.
        try:
            return self._path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSpec.of("the policy cannot be read", str(error), "Mount its ConfigMap") from error

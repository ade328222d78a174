"""The policy as a file that changes: read again when it does, the last good one kept."""

from __future__ import annotations

from pathlib import Path

import structlog

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy import Policy
from podferry.webhook.policy_yaml import read_policy

log = structlog.get_logger(__name__)


class PolicyFile:
    """A policy on disk; in a pod, a ConfigMap's file.

    Attributes:
        policy: The last good one.
        problems: What is wrong with the file as it is now, empty where nothing is.
    """

    def __init__(self, path: Path) -> None:
        """Read it.

        Raises:
            InvalidSpec: There is no good one to start with.
        """
        self._path = path
        self._text = self._read()
        self.policy: Policy = read_policy(self._text)
        self.problems: tuple[str, ...] = ()

    def refresh(self) -> bool:
        """Take over what has changed; whether there is a new policy. A file that is wrong changes nothing."""
        try:
            text = self._read()
            if text == self._text:
                return False
            self._text = text
            policy = read_policy(text)
        except InvalidSpec as error:
            self._complain(error)
            return False
        changed = policy != self.policy
        self.policy, self.problems = policy, ()
        log.info("policy read", digest=policy.digest, changed=changed)
        return changed

    def _complain(self, error: InvalidSpec) -> None:
        problems = tuple(str(problem) for problem in error.problems)
        if problems != self.problems:
            log.error(
                "the policy is wrong: the last good one stays", kept=self.policy.digest, problems=problems
            )
        self.problems = problems

    def _read(self) -> str:
        # Compared by content: a ConfigMap's file is a link that changes while the time it shows need not.
        try:
            return self._path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidSpec.of("the policy cannot be read", str(error), "Mount its ConfigMap") from error

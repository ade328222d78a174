"""The policy file: reloaded when it changes; the last valid policy stays in use."""

from __future__ import annotations

from pathlib import Path

import structlog

from podferry.contract.errors import InvalidSpec
from podferry.webhook.policy.policy import Policy
from podferry.webhook.policy.policy_yaml import read_policy

log = structlog.get_logger(__name__)


class PolicyFile:
    """A policy on disk; in a pod, a file of a ConfigMap.

    Attributes:
        policy: The last valid policy.
        text: Its text.
        problems: Problems of the current file; empty if it is valid.
    """

    def __init__(self, path: Path, last: str | None = None) -> None:
        """Read the file; if it is invalid, use `last`, the text of the last valid policy.

        Raises:
            InvalidSpec: The file is invalid, and `last` is as well or does not exist.
        """
        self._path, self._read_text = path, ""
        self.problems: tuple[str, ...] = ()
        try:
            self._read_text = self.text = self._read()
            self.policy: Policy = read_policy(self.text)
        except InvalidSpec as error:
            self.text, self.policy = self._last_valid(last, error)
            self._report(error)

    def refresh(self, text: str | None = None) -> bool:
        """Reload a changed policy, unless it is invalid; return whether it changed.

        `text` is what the file will have, if that is known already.
        """
        try:
            text = self._read() if text is None else text
            if text == self._read_text and not self.problems:
                return False
            self._read_text = text
            policy = read_policy(text)
        except InvalidSpec as error:
            self._report(error)
            return False
        changed = policy != self.policy
        self.policy, self.text, self.problems = policy, text, ()
        log.info("policy read", digest=policy.digest, changed=changed)
        return changed

    @staticmethod
    def _last_valid(last: str | None, error: InvalidSpec) -> tuple[str, Policy]:
        try:
            return last or "", read_policy(last or "")
        except InvalidSpec:
            raise error from None

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

"""The policy: its values, rules and guardrails, read, validated and applied to pods."""

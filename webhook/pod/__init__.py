"""Reading a pod as JSON, and patching it; nothing of the policy."""

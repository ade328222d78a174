"""What the webhook reads from and writes to the API server: namespaces, certificates, policy, rules."""

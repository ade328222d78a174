"""The sidecar's command, and the supervisor that restarts its worker."""

"""A pod's annotations become sidecar, gate and volumes, or a refusal."""

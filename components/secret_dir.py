"""Where the Secret of a step is mounted: its own module, which loads neither kfp nor the stores."""

from pathlib import Path

SECRET_DIR = Path("/var/run/secrets/podferry.io")
"""Mount path of a step's Secret. KFP's local runner mounts none; then the environment applies."""

"""Where the Secrets of a step are mounted: its own module, which loads neither kfp nor the stores."""

from pathlib import Path

SECRET_DIR = Path("/var/run/secrets/podferry.io")
"""Mount path of a step's Secret. KFP's local runner mounts none; then the environment applies."""
SOURCE_SECRET_DIR = SECRET_DIR.with_name("podferry.io-source")
"""Of one that applies to what the step reads alone."""
DESTINATION_SECRET_DIR = SECRET_DIR.with_name("podferry.io-destination")
"""Of one that applies to what the step writes alone."""

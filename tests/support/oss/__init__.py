"""An imitation of OSS: no emulator is usable, so Alibaba's own SDKs decide whether this one is right."""

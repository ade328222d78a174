"""Orbax' CheckpointManager, asynchronous as it is by default, keeping two."""

import jax.numpy as jnp
import orbax.checkpoint as ocp
from announce import ROOT, saved

with ocp.CheckpointManager(ROOT, options=ocp.CheckpointManagerOptions(max_to_keep=2)) as manager:
    for step in (1, 2, 3):
        state = {"weights": jnp.full((64, 32), float(step)), "step": step}
        manager.save(step, args=ocp.args.StandardSave(state))
        manager.wait_until_finished()
        saved(f"{step}")

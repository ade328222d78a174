"""Python runs this at its start where the fault run has put its folder on the path.

In the agent's worker it gives the clock that jumps, and where the fault run is to prove that it sees, it
takes one of the agent's defences out. Elsewhere it does nothing.
"""
# ruff: noqa: INP001 - found by its name on the path, in no package

import os
import sys

if "--worker" in sys.orig_argv:
    if "FAULTS_CLOCK" in os.environ:
        from faults.clock import jump_with

        jump_with(os.environ["FAULTS_CLOCK"])
    if "FAULTS_SABOTAGE" in os.environ:
        from faults.sabotage import take_out

        take_out(os.environ["FAULTS_SABOTAGE"])

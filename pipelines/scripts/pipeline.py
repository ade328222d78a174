"""Trains with a script that is stored next to the data: a change of the script needs no new image.

The scripts are frozen like the data. So a training with changed scripts is another training: it has a lineage
of its own, and KFP's cache does not answer it.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, and there is no
# `from __future__ import annotations` here.
# mypy: disable-error-code=no-any-return, disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import os

from kfp import dsl

from podferry.components import dataset, gpu_train, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""An image with the packages that the scripts import, and `podferry[kfp]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials. A local run reads the environment."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(data: str, scripts: str, checkpoints: str, script: str) -> str:
    """Run a script with three arguments: data, directory of the checkpoints, the checkpoint to resume from.

    Args:
        data: Reference of the data.
        scripts: Reference of the scripts.
        checkpoints: URI of the destination.
        script: Name of the script, such as train.py.

    Returns:
        The last line that the script has printed; empty if it has printed nothing.
    """
    import subprocess
    import sys

    from podferry.trainer import ferry

    with ferry({"data": data, "scripts": scripts}, checkpoints) as f:
        words = [f.datasets["scripts"] / script, f.datasets["data"], f.checkpoints, f.restored or ""]
        command = [sys.executable, *map(str, words)]
        last = ""
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout or ():
                print(line, end="", flush=True)
                last = line.rstrip("\n")
        if process.returncode:
            raise RuntimeError(f"{script} ended with exit code {process.returncode}")
    return last


@dsl.pipeline(name="scripts")
def scripts(data: str, code: str, checkpoints: str, script: str = "train.py") -> str:
    """Freeze data and scripts, train, and verify.

    Args:
        data: URI of the data.
        code: URI of the folder of scripts.
        checkpoints: URI of the destination.
        script: Name of the script.
    """
    frozen = dataset(data, secret=SECRET)
    shipped = dataset(code, secret=SECRET)
    step = train(
        data=frozen.outputs["reference"],
        scripts=shipped.outputs["reference"],
        checkpoints=checkpoints,
        script=script,
    )
    gpu_train(
        step,
        dataset={"data": frozen.outputs["reference"], "scripts": shipped.outputs["reference"]},
        checkpoints=checkpoints,
        checkpoint_size="64Mi",
        gpus=0,
        secret=SECRET,
    )
    verify_checkpoint(of=step, secret=SECRET)
    return step.output

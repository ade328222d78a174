"""Dataset, cache, train, verify: a pipeline to copy.

    python train.py DATASET CHECKPOINTS               run it on this machine
    python train.py --compile train.yaml              compile it for a cluster

On a laptop `ferry` stages the data and uploads the checkpoints. On a cluster `gpu_train` sets the pod's
annotations, the webhook injects an agent, and `ferry` uses that agent.
"""

# KFP copies only a step's source and reads its annotations as values: imports are inside, and there is no
# `from __future__ import annotations` here.
# mypy: disallow-untyped-decorators=False
# ruff: noqa: PLC0415
import argparse
import os
import tempfile

from kfp import compiler, dsl, local

from podferry.components import cache, dataset, gpu_train, verify_checkpoint

IMAGE = os.environ.get("TRAIN_IMAGE", "podferry:0.1.0-python3.12")
"""Image of the training: your framework and `podferry[kfp]`."""
SECRET = "podferry-store"  # noqa: S105 - the name of a Secret, not what it holds
"""Secret with the store's credentials, in the namespace of the run. A local run reads the environment."""
ENDPOINT = os.environ.get("TRAIN_ENDPOINT", "")
"""URL of the object store, as `http://minio-service.kubeflow:9000`; empty for the vendor's."""


@dsl.component(base_image=IMAGE, install_kfp_package=False)
def train(dataset: str, checkpoints: str, steps: int) -> None:
    """Replace this with your training: read files, write files, resume from the restored checkpoint.

    Args:
        dataset: The frozen dataset. As a parameter it makes training run again if the data changes.
        checkpoints: Destination of the checkpoints.
        steps: Number of training steps.
    """
    import json

    from podferry.components import ferry

    with ferry(dataset, checkpoints) as f:
        assert f.dataset and f.checkpoints  # noqa: PT018, S101 - both were requested
        files = [path for path in f.dataset.rglob("*") if path.is_file()]
        done = json.loads(f.restored.read_text())["step"] if f.restored else 0
        print(f"{len(files)} files in {f.dataset}; {done} steps are done, {steps - done} are left")
        for step in range(done + 1, steps + 1):
            seen = sum(len(path.read_bytes()) for path in files)
            state = {"step": step, "bytes": seen}
            (f.checkpoints / f"step-{step}.json").write_text(json.dumps(state))


@dsl.pipeline(name="podferry-train")
def pipeline(uri: str, checkpoints: str, steps: int = 3) -> None:
    """Train on a dataset; succeed only if the last checkpoint is safe."""
    data = dataset(uri, secret=SECRET, endpoint=ENDPOINT)
    plan = cache(
        data.outputs["reference"],
        checkpoint_size="64Mi",
        train_memory="2Gi",
        shm_size="1Gi",
        pod_memory="32Gi",
        secret=SECRET,
        endpoint=ENDPOINT,
    )
    step = train(dataset=plan.outputs["reference"], checkpoints=checkpoints, steps=steps)
    gpu_train(
        step,
        gpus=0,
        checkpoint_size="64Mi",
        shm_size="1Gi",
        memory=plan.outputs["process_memory"],
        secret=SECRET,
        endpoint=ENDPOINT,
    )
    verify_checkpoint(of=step, full=True, secret=SECRET)


def main() -> None:
    """Run or compile the pipeline."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("locations", nargs="*", metavar="DATASET CHECKPOINTS", help="URIs or absolute paths")
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--compile", metavar="FILE")
    options = parser.parse_args()
    if options.compile:
        compiler.Compiler().compile(pipeline, options.compile)
        return
    if len(options.locations) != 2:
        parser.error("give the DATASET and the CHECKPOINTS, or --compile FILE")
    # Without virtual environments of their own, the steps use the podferry installed here.
    local.init(local.SubprocessRunner(use_venv=False), pipeline_root=tempfile.mkdtemp(prefix="pipeline-"))
    pipeline(uri=options.locations[0], checkpoints=options.locations[1], steps=options.steps)


if __name__ == "__main__":
    main()

import json
from collections.abc import Callable
from typing import Any

import pytest

from podferry.contract.kfp_run_folders import run_of, without_runs
from podferry.contract.pod_owner import kfp_inputs_of

RUN = "c6560994-25fc-4601-b7b5-e2fc66f94fe0"


def test_recorded_executors_write_to_the_folder_of_their_pipeline_and_run(
    recorded: Callable[[str], dict[str, Any]], executor_name: str
) -> None:
    pod = recorded(executor_name)
    command = pod["spec"]["containers"][1]["command"]
    written = json.loads(command[command.index("--executor_input") + 1])["outputs"]["outputFile"]
    inputs = kfp_inputs_of(pod)
    assert inputs is not None
    assert run_of(written) == (inputs.pipeline, inputs.run_id)


@pytest.mark.parametrize(
    ("path", "pipeline", "run"),
    [
        (
            "/root/p-2026-11-23-13-36-56-907238/mk/executor_output.json",
            "",
            "p-2026-11-23-13-36-56-907238",
        ),
        (f"/minio/b/v2/fstr/{RUN}/use/{RUN[::-1]}/output_metadata.json", "fstr", RUN),
        (f"{RUN}/use/x/output_metadata.json", "", RUN),
        ("/tmp/output.json", "", ""),
        ("", "", ""),
    ],
)
def test_the_pipeline_and_the_run_of_an_output(path: str, pipeline: str, run: str) -> None:
    assert run_of(path) == (pipeline, run)


def test_a_location_without_the_names_of_runs() -> None:
    assert without_runs(f"minio://b/v2/p/{RUN}/task/x-{RUN}") == "minio://b/v2/p/*/task/x-*"
    assert without_runs("/root/p-2026-11-23-13-36-56-907238/mk") == "/root/*/mk"

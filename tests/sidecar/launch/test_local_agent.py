from __future__ import annotations

from podferry.sidecar.launch.local_agent import local_directories
from podferry.sidecar.launch.local_spec import local_spec


def test_a_local_run_has_outputs_in_memory_or_in_the_given_directory(tmp_path):
    settings_ = {"outputs": str(tmp_path / "out"), "outputs_every": "60s"}
    spec = local_spec(settings_, ["python", "t.py"], tmp_path)
    assert (spec.outputs.uri, spec.outputs.every) == (f"file://{tmp_path}/out", 60)
    assert spec.lineage.startswith("local.t.")
    directories = local_directories(spec, tmp_path)
    assert directories.outputs == tmp_path / "outputs"
    assert directories.outputs.is_dir()
    own = local_spec({"outputs": "s3://b/o", "output_path": str(tmp_path / "runs")}, ["t.py"], tmp_path)
    assert local_directories(own, tmp_path).outputs == tmp_path / "runs"

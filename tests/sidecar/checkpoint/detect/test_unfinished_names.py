import pytest

from podferry.sidecar.checkpoint.detect.candidate import candidates
from podferry.sidecar.checkpoint.detect.unfinished_names import TEMPFILE, UNFINISHED_NAMES, is_unfinished
from podferry.sidecar.runtime.file_identity import FileIdentity

EXAMPLES = {
    "*.tmp": ["last.pt.tmp", "step/.metadata.tmp"],
    "*.tmp.*": ["last.tmp.a1b2", "step/last.tmp.pt"],
    "*.tmp" + "[0-9a-f]" * 32: [f"checkpoint.tmp{'0a' * 16}", f"export-1/saved_model.pb.tmp{'f9' * 16}"],
    "tmp-checkpoint-*": ["tmp-checkpoint-500/model.safetensors", "run/tmp-checkpoint-500/trainer_state.json"],
    "*.__lock": ["5/manifest.ocdbt.__lock"],
    "*.partial": ["last.partial", "step/last.pt.partial"],
    "*.part": ["last.part", "step/last.pt.part"],
    "*.incomplete": ["last.incomplete", "step/x.incomplete"],
    "*.orbax-checkpoint-tmp*": ["5.orbax-checkpoint-tmp-17/_METADATA", "runs/5.orbax-checkpoint-tmp/d"],
    "*.tempstate*": ["ckpt-1.index.tempstate1234", "train/ckpt-1.data-00000-of-00001.tempstate99"],
    ".tmp*": [".tmpqowx2b", "checkpoint-5/.tmpqowx2b"],
    ".*": [".hidden", ".cache/w"],
    TEMPFILE: ["tmpab12_x9z", "tmpab12_x9z/w"],
    f"{TEMPFILE}.*": ["tmpab12_x9z.pt"],
    "*_.gstmp": ["last.pt_.gstmp", "step/last.pt_.gstmp"],
    ".~tmp~": [".~tmp~/last.pt", "step/.~tmp~/last.pt"],
    "*_temp": ["ckpt-1_temp/part-00000-of-00001.index"],
}


@pytest.mark.parametrize("pattern", UNFINISHED_NAMES)
def test_every_unfinished_name_has_an_example(pattern):
    assert all(is_unfinished(name) for name in EXAMPLES[pattern])
    files = {name: FileIdentity(1, 1, 1) for name in EXAMPLES[pattern]}
    assert candidates(files).keys().isdisjoint(EXAMPLES[pattern])


@pytest.mark.parametrize(
    "name",
    [
        "last.pt",
        "step/.metadata",
        "step/tmp/w",
        "step/weights_temp/w",
        "temperature.pt",
        "a.parts",
        "5/d/0",
        "tmpnet-100.bin",
        "tmp_model.pt",
        "step/.model.config",
        "step/.weights.sha256",
    ],
)
def test_finished_names(name):
    assert not is_unfinished(name)


def test_a_file_that_rsync_is_writing_is_unfinished():
    assert is_unfinished("step/.a.bin.Xy12Zq")
    assert is_unfinished(".a.bin.Xy12Zq")

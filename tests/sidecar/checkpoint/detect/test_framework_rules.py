import pytest

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, KNOWN, Without


@pytest.mark.parametrize("writer", FRAMEWORK_RULES, ids=lambda writer: writer.name)
def test_every_row_is_whole(writer):
    signs, last = writer.patterns
    assert all(pattern.groups == 1 for pattern in (*signs, *last))
    assert writer.besides
    assert writer.tried
    assert writer.source or not writer.signs
    assert writer.last or writer.without is Without.PAUSE
    assert writer.last or not writer.ordered


def test_names_are_unique():
    assert len({writer.name for writer in FRAMEWORK_RULES}) == len(FRAMEWORK_RULES)


@pytest.mark.parametrize(
    ("name", "writers"),
    [
        ("step/__0_0.distcp", {"torch DCP"}),
        ("__0_0.distcp", {"torch DCP"}),
        ("iter_0000001/__0_0.distcp", {"torch DCP", "Megatron-LM"}),
        ("runs/ckpt-1.data-00000-of-00001", {"TensorFlow Saver"}),
        ("checkpoint-5/training_args.bin", {"Hugging Face Trainer"}),
        ("training_args.bin", set()),
        ("checkpoint-5/deep/optimizer.pt", {"torch.save, Keras archives, savez"}),
        ("global_step2/mp_rank_00_model_states.pt", {"DeepSpeed", "torch.save, Keras archives, savez"}),
        ("a.raw", set()),
    ],
)
def test_names_are_recognised(name, writers):
    found = {w.name for w in FRAMEWORK_RULES if any(pattern.fullmatch(name) for pattern in w.patterns[0])}
    assert found == writers
    assert bool(KNOWN.fullmatch(name.rpartition("/")[2])) >= bool(found)

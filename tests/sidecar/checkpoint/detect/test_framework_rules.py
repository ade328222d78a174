import pytest

from podferry.sidecar.checkpoint.detect.framework_rules import FRAMEWORK_RULES, KNOWN_NAMES


@pytest.mark.parametrize("rule", FRAMEWORK_RULES, ids=lambda rule: rule.name)
def test_every_rule_is_filled_in(rule):
    recognised_by, written_last = rule.compiled
    assert all(pattern.groups == 1 for pattern in (*recognised_by, *written_last))
    assert rule.notes
    assert rule.tested_with
    assert rule.source or not rule.recognised_by
    assert rule.written_last or not rule.blocking
    assert rule.written_last or not rule.last_is_newest


def test_names_are_unique():
    assert len({rule.name for rule in FRAMEWORK_RULES}) == len(FRAMEWORK_RULES)


@pytest.mark.parametrize(
    ("name", "frameworks"),
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
def test_names_are_recognised(name, frameworks):
    found = {
        rule.name for rule in FRAMEWORK_RULES if any(pattern.fullmatch(name) for pattern in rule.compiled[0])
    }
    assert found == frameworks
    assert bool(KNOWN_NAMES.fullmatch(name.rpartition("/")[2])) >= bool(found)

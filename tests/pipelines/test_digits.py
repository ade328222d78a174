from google.protobuf import json_format

from podferry.pipelines.digits import digits


def test_the_pipeline_is_dataset_cache_train_verify():
    spec = json_format.MessageToDict(digits.pipeline_spec)
    tasks = spec["root"]["dag"]["tasks"]
    assert set(tasks) == {"dataset", "cache", "train", "verify-checkpoint"}
    assert tasks["cache"]["dependentTasks"] == ["dataset"]
    assert tasks["train"]["dependentTasks"] == ["cache"]
    assert tasks["verify-checkpoint"]["dependentTasks"] == ["train"]


def test_training_has_its_annotations_on_a_cluster():
    platform = json_format.MessageToDict(digits.platform_spec)
    executors = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]
    annotations = executors["exec-train"]["podMetadata"]["annotations"]
    assert annotations["podferry.io/dataset"] == "$(inputs.dataset)"
    assert annotations["podferry.io/checkpoints"] == "$(inputs.checkpoints)"

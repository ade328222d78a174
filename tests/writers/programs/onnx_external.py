"""ONNX with external data: the graph and its tensors in two files, in a directory and at the top."""

import numpy as np
import onnx
from announce import ROOT, saving
from onnx import TensorProto, helper, numpy_helper

for step in (1, 2, 3):
    weights = numpy_helper.from_array(np.full((64, 32), float(step), np.float32), "weights")
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, size])
        for name, size in (("x", 64), ("y", 32))
    ]
    node = helper.make_node("MatMul", ["x", "weights"], ["y"])
    graph = helper.make_graph([node], "graph", ends[:1], ends[1:], [weights])
    for place in (ROOT / f"step-{step}", ROOT):
        place.mkdir(exist_ok=True)
        with saving(place.name):
            model = helper.make_model(graph)
            onnx.save_model(
                model,
                place / "model.onnx",
                save_as_external_data=True,
                location="model.data",
                size_threshold=0,
            )

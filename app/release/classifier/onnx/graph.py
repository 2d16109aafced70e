"""A builder of one ONNX graph, node by node.

Every internal name begins with a prefix that no input or output begins with, and ends with a
number, so that the same calls give the same bytes. The versions of ONNX's operators are those that
onnxruntime 1.17 and every later version can load.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray
    from onnx import ModelProto, NodeProto, ValueInfoProto

FORMAT_VERSION: Final = 8
OPERATORS_VERSION: Final = 17
LEARNING_DOMAIN: Final = "ai.onnx.ml"
LEARNING_VERSION: Final = 3
FLOAT: Final = int(TensorProto.FLOAT)
DOUBLE: Final = int(TensorProto.DOUBLE)
INTEGER: Final = int(TensorProto.INT64)
UNSIGNED: Final = int(TensorProto.UINT64)
STRING: Final = int(TensorProto.STRING)
ROWS: Final = "N"


class Graph:
    """The inputs, constants and nodes of one ONNX graph, in the order in which they are added."""

    def __init__(self, *, reserved: Sequence[str]) -> None:
        """Start an empty graph; ``reserved`` has the names of its inputs and outputs."""
        self._prefix = "/"
        while any(name.startswith(self._prefix) for name in reserved):
            self._prefix += "/"
        self._inputs: list[ValueInfoProto] = []
        self._outputs: list[ValueInfoProto] = []
        self._constants: list[TensorProto] = []
        self._nodes: list[NodeProto] = []

    def number_input(self, name: str, *, width: int) -> str:
        """Declare a float64 input of the graph, shape (N, width), and return its name."""
        return self._input(name, DOUBLE, width)

    def string_input(self, name: str) -> str:
        """Declare a string input of the graph, shape (N, 1), and return its name."""
        return self._input(name, STRING, 1)

    def label_output(self, name: str) -> None:
        """Declare a string output of the graph, shape (N,)."""
        self._outputs.append(helper.make_tensor_value_info(name, STRING, [ROWS]))

    def scores_output(self, name: str, *, width: int) -> None:
        """Declare an int64 output of the graph, shape (N, width)."""
        self._outputs.append(helper.make_tensor_value_info(name, INTEGER, [ROWS, width]))

    def constant(self, values: NDArray[np.generic]) -> str:
        """Store an array of numbers as a constant of the graph, and return its name."""
        name = f"{self._prefix}constant_{len(self._constants)}"
        self._constants.append(numpy_helper.from_array(values, name))
        return name

    def strings(self, texts: Sequence[str]) -> str:
        """Store strings as a constant of the graph, and return its name."""
        return self.constant(np.array(list(texts), dtype=object))

    def indices(self, *values: int) -> str:
        """Store int64 values as a constant of the graph, and return its name."""
        return self.constant(np.array(values, dtype=np.int64))

    def add(
        self,
        operator: str,
        *inputs: str,
        output: str | None = None,
        domain: str | None = None,
        **attributes: int | str | list[int] | list[str],
    ) -> str:
        """Add a node with one output to the graph, and return the output's name.

        Args:
            operator: the name of the ONNX operator.
            inputs: the names of the node's inputs.
            output: the name of the node's output; None for a new numbered name.
            domain: the operator's domain; None for the standard domain.
            attributes: the operator's attributes.

        """
        name = output or f"{self._prefix}value_{len(self._nodes)}"
        node = helper.make_node(operator, inputs, [name], name=name, domain=domain)
        node.attribute.extend(
            helper.make_attribute(key, value) for key, value in sorted(attributes.items())
        )
        self._nodes.append(node)
        return name

    def model(self, *, name: str, version: str, about: str, metadata: Mapping[str, str]) -> bytes:
        """Return the checked ONNX model as bytes.

        Args:
            name: the name of the graph.
            version: the version of the program that writes the model.
            about: a sentence that describes the model.
            metadata: public texts about the model, by their names.

        """
        graph = helper.make_graph(
            self._nodes, name, self._inputs, self._outputs, initializer=self._constants
        )
        operator_sets = [helper.make_opsetid("", OPERATORS_VERSION)]
        if any(node.domain == LEARNING_DOMAIN for node in self._nodes):
            operator_sets.append(helper.make_opsetid(LEARNING_DOMAIN, LEARNING_VERSION))
        model: ModelProto = helper.make_model(
            graph,
            opset_imports=operator_sets,
            ir_version=FORMAT_VERSION,
            producer_name="conclave",
            producer_version=version,
            doc_string=about,
        )
        helper.set_model_props(model, dict(metadata))
        checker.check_model(model)
        return bytes(model.SerializeToString(deterministic=True))

    def _input(self, name: str, element: int, width: int) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, element, [ROWS, width]))
        return name

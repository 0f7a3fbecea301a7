"""ONNX models of a few nodes, encoded by hand: this much is simple, and the package onnx need not be installed.

Protocol buffers (https://protobuf.dev/programming-guides/encoding): a message is a sequence of fields, each a key
(number of the field * 8 + kind) and a value; kind 0 is an integer with seven bits per byte, kind 2 a length and that
many bytes. The numbers of the fields are those of onnx.proto (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
"""

from __future__ import annotations

from typing import Iterator, NamedTuple, Sequence, Tuple

IR_VERSION = 7
OPERATOR_SET = 13
"""That of ONNX 1.8, December 2020, which ONNX Runtime 1.6 and every later one can read."""
FLOAT = 1
INTS = 7
INTEGER, BYTES = 0, 2


class Node(NamedTuple):
    """One operator with its inputs and output; attributes are lists of integers."""

    operator: str
    inputs: Tuple[str, ...]
    output: str
    attributes: Tuple[Tuple[str, Tuple[int, ...]], ...] = ()


class Tensor(NamedTuple):
    """An input or output of the graph, of float32."""

    name: str
    shape: Tuple[int, ...]


def model(nodes: Sequence[Node], inputs: Sequence[Tensor], output: Tensor) -> bytes:
    """The bytes of a ModelProto."""
    graph = (
        b"".join(message(1, node_bytes(it)) for it in nodes)
        + text(2, "envsolve")
        + b"".join(message(11, tensor_bytes(it)) for it in inputs)
        + message(12, tensor_bytes(output))
    )
    return (
        integer(1, IR_VERSION)
        + text(2, "envsolve")
        + message(7, graph)
        + message(8, text(1, "") + integer(2, OPERATOR_SET))
    )


def node_bytes(node: Node) -> bytes:
    """A NodeProto."""
    attributes = (
        text(1, name) + b"".join(integer(8, value) for value in values) + integer(20, INTS)
        for name, values in node.attributes
    )
    return (
        b"".join(text(1, name) for name in node.inputs)
        + text(2, node.output)
        + text(3, node.output + "_node")
        + text(4, node.operator)
        + b"".join(message(5, it) for it in attributes)
    )


def tensor_bytes(tensor: Tensor) -> bytes:
    """A ValueInfoProto, with a TypeProto.Tensor."""
    shape = b"".join(message(1, integer(1, size)) for size in tensor.shape)
    return text(1, tensor.name) + message(2, message(1, integer(1, FLOAT) + message(2, shape)))


def integer(field: int, value: int) -> bytes:
    """A field with a non-negative number."""
    return varint(field << 3 | INTEGER) + varint(value)


def text(field: int, value: str) -> bytes:
    """A field with a string."""
    return message(field, value.encode("utf-8"))


def message(field: int, value: bytes) -> bytes:
    """A field with a nested message, or bytes."""
    return varint(field << 3 | BYTES) + varint(len(value)) + value


def varint(value: int) -> bytes:
    """Seven bits per byte, the lowest first; the top bit says that another byte follows."""
    return bytes(_groups(value))


def _groups(value: int) -> Iterator[int]:
    while value >> 7:
        yield value & 0x7F | 0x80
        value >>= 7
    yield value

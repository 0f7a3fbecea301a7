"""The hand-written encoding of ONNX models, read back by the rules of protocol buffers."""

from __future__ import annotations

from collections import defaultdict

import pytest

from envsolve.validation.inside.onnx_model import Node, Tensor, model, varint

Fields = dict[int, list[int | bytes]]


def read_varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place


def fields(data: int | bytes) -> Fields:
    assert isinstance(data, bytes)
    found: Fields = defaultdict(list)
    place = 0
    while place < len(data):
        key, place = read_varint(data, place)
        value, place = read_varint(data, place)
        if key & 7 == 2:
            found[key >> 3].append(data[place : place + value])
            place += value
        else:
            assert key & 7 == 0
            found[key >> 3].append(value)
    assert place == len(data)
    return found


@pytest.mark.parametrize(
    ("number", "encoded"), [(0, b"\0"), (1, b"\1"), (127, b"\x7f"), (128, b"\x80\1"), (300, b"\xac\2")]
)
def test_integers_are_encoded_like_in_the_protocol_buffers_guide(number: int, encoded: bytes) -> None:
    assert varint(number) == encoded
    assert read_varint(encoded, 0) == (number, len(encoded))


def test_a_model_survives_a_round_trip() -> None:
    convolve = Node("Conv", ("images", "filters"), "made", (("pads", (1, 1, 1, 1)), ("strides", (1, 300))))
    data = model((convolve,), (Tensor("images", (2, 8, 12, 200)),), Tensor("made", (2, 16)))
    whole = fields(data)
    assert whole[1] == [7]
    assert fields(whole[8][0]) == {1: [b""], 2: [13]}
    graph = fields(whole[7][0])
    node = fields(graph[1][0])
    assert node[1] == [b"images", b"filters"]
    assert (node[2], node[4]) == ([b"made"], [b"Conv"])
    assert [(it[1], it[8], it[20]) for it in map(fields, node[5])] == [
        ([b"pads"], [1, 1, 1, 1], [7]),
        ([b"strides"], [1, 300], [7]),
    ]
    images = fields(graph[11][0])
    assert images[1] == [b"images"]
    tensor = fields(fields(images[2][0])[1][0])
    assert tensor[1] == [1]
    assert [fields(it)[1] for it in fields(tensor[2][0])[1]] == [[2], [8], [12], [200]]
    assert fields(graph[12][0])[1] == [b"made"]

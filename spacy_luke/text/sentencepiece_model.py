"""Reading and writing the file of a SentencePiece model, without the sentencepiece package.

The file is a protocol buffer (google/sentencepiece, src/sentencepiece_model.proto, Apache-2.0). Only the fields that
tokenisation needs are known here: ModelProto.pieces = 1 {piece = 1, score = 2, type = 3}, .trainer_spec = 2 {model_type
= 3, byte_fallback = 35, unk_id = 40}, .normalizer_spec = 3 {precompiled_charsmap = 2, add_dummy_prefix = 3,
remove_extra_whitespaces = 4, escape_whitespaces = 5}.
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

NORMAL, UNKNOWN, CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 1, 2, 3, 4, 5, 6
_MODEL_TYPES = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
Value = Any  # int or bytes, by the field


def read_sentencepiece(data: bytes, *, name: str = "the file") -> "SentencePieceModel":
    """Parse a model. Raises ValueError (naming `name`) for what is not a SentencePiece model, or not a unigram one."""
    pieces: list[tuple[str, float, int]] = []
    trainer: dict[int, Value] = {}
    normalizer: dict[int, Value] = {}
    try:
        for field, value in _fields(data):
            if field == 1:
                piece = dict(_fields(value))
                score = struct.unpack("<f", piece.get(2, b"\0\0\0\0"))[0]
                pieces.append((piece[1].decode("utf8"), score, piece.get(3, NORMAL)))
            elif field == 2:
                trainer = dict(_fields(value))
            elif field == 3:
                normalizer = dict(_fields(value))
    except (IndexError, KeyError, TypeError, AttributeError, ValueError, struct.error) as error:
        raise ValueError(
            f"Expected a SentencePiece model in {name} ({len(data)} bytes), but it cannot be parsed ({error!r}); "
            f"the file is truncated or of another kind."
        ) from error
    if not pieces:
        raise ValueError(f"Expected a SentencePiece model in {name}, but it has no pieces.")
    model_type = _MODEL_TYPES.get(trainer.get(3, 1), "unknown")
    if model_type != "unigram":
        raise ValueError(f"Expected a unigram SentencePiece model in {name}, but its type is {model_type!r}.")
    return SentencePieceModel(
        pieces=pieces,
        unk_id=trainer.get(40, 0),
        byte_fallback=bool(trainer.get(35, 0)),
        charsmap=normalizer.get(2, b""),
        add_dummy_prefix=bool(normalizer.get(3, 1)),
        remove_extra_whitespaces=bool(normalizer.get(4, 1)),
    )


def write_sentencepiece(model: "SentencePieceModel") -> bytes:
    """The model as a file, readable by the sentencepiece package."""
    out = bytearray()
    for piece, score, kind in model.pieces:
        message = _bytes_field(1, piece.encode("utf8")) + b"\x15" + struct.pack("<f", score)
        if kind != NORMAL:
            message += _number_field(3, kind)
        out += _bytes_field(1, message)
    trainer = _number_field(3, 1) + _number_field(35, model.byte_fallback) + _number_field(40, model.unk_id)
    controls = {piece: i for i, (piece, _, _) in enumerate(model.pieces)}
    for field, piece in ((41, "<s>"), (42, "</s>")):
        trainer += _number_field(field, controls.get(piece, -1))
    normalizer = _bytes_field(1, b"nmt_nfkc") + _bytes_field(2, model.charsmap)
    normalizer += _number_field(3, model.add_dummy_prefix) + _number_field(4, model.remove_extra_whitespaces)
    return bytes(out + _bytes_field(2, trainer) + _bytes_field(3, normalizer + _number_field(5, 1)))


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        field, wire = key >> 3, key & 7
        value: Value
        if wire == 0:
            value, at = _varint(data, at)
        elif wire == 1:
            value, at = data[at : at + 8], at + 8
        elif wire == 2:
            size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        elif wire == 5:
            value, at = data[at : at + 4], at + 4
        else:
            raise ValueError(f"wire type {wire} at byte {at}")
        if at > len(data):
            raise ValueError(f"a field ends at byte {at} of {len(data)}")
        yield field, value


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError(f"a number is too long at byte {at}")


def _number_field(field: int, value: int) -> bytes:
    return _encode_varint(field << 3) + _encode_varint(int(value) & 0xFFFFFFFFFFFFFFFF)


def _bytes_field(field: int, value: bytes) -> bytes:
    return _encode_varint(field << 3 | 2) + _encode_varint(len(value)) + value


def _encode_varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


@dataclass(frozen=True)
class SentencePieceModel:
    pieces: list[tuple[str, float, int]]  # text, log probability, kind (NORMAL ... BYTE)
    unk_id: int
    byte_fallback: bool
    charsmap: bytes  # compiled character normalisation (nmt_nfkc for XLM-R)
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True

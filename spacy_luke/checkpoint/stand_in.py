"""The smallest checkpoint, for components that have an encoder and do not run it."""

import torch

from ..entity_vocab import EntityVocab
from ..model.config import LukeConfig
from ..text.backends import BERT_SPECIAL, build_wordpiece
from ..text.tokenizer import PieceTokenizer
from .contents import LukeCheckpoint
from .names import encoder_shapes

_ENTITIES = ("[PAD]", "[UNK]", "[MASK]")


def make_stand_in() -> LukeCheckpoint:
    """A layer of width 1, zeros, whose tokenizer has the special pieces alone."""
    pieces = {piece: row for row, piece in enumerate(BERT_SPECIAL)}
    tokenizer = PieceTokenizer(build_wordpiece(pieces, unk=BERT_SPECIAL[3], settings={}), special=BERT_SPECIAL)
    config = LukeConfig(
        vocab_size=len(pieces),
        entity_vocab_size=len(_ENTITIES),
        hidden_size=1,
        num_layers=1,
        num_heads=1,
        intermediate_size=1,
        entity_size=1,
        position_offset=0,
        entity_aware=False,
    )
    return LukeCheckpoint(
        config,
        {name: torch.zeros(shape) for name, shape in encoder_shapes(config).items()},
        tokenizer=tokenizer,
        entities=EntityVocab((name, row) for row, name in enumerate(_ENTITIES)),
        source={"kind": "stand-in"},
    )

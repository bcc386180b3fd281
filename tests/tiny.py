"""Small checkpoints for the tests, made here: every parameter is noise, so that none can be mistaken for another."""

import functools

import torch

from spacy_luke.checkpoint.assemble import fresh_tensors
from spacy_luke.checkpoint.contents import ErnieCheckpoint, LukeCheckpoint
from spacy_luke.checkpoint.ernie import ernie_shapes
from spacy_luke.entity_vocab import EntityVocab
from spacy_luke.model.config import LukeConfig
from spacy_luke.model.ernie import ErnieConfig
from spacy_luke.model.luke import LukeEncoder
from spacy_luke.text.tokenizer import PieceTokenizer

SENTENCES = [
    "Ada Lovelace lived in London near the Royal Society .",
    "Nadia Haddad works for the Bank of Ghana in Accra !",
    "Kofi Mensah left Berlin and joined the University of Lagos .",
    "It rained all day , and nobody came to the village hall .",
]
SPECIAL = ("<s>", "</s>", "<pad>", "<unk>", "<mask>")  # [CLS], [SEP], padding, unknown, mask
ENTITY_SIZE = 12  # numbers of an entity vector of make_ernie
ENTITIES = {"[PAD]": 0, "[UNK]": 1, "Japan": 2, "[MASK]": 3, "Ghana": 4, "[MASK2]": 5, "Accra": 6}


@functools.cache
def tokenizer_json() -> str:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=330,
        special_tokens=[SPECIAL[0], SPECIAL[2], SPECIAL[1], *SPECIAL[3:]],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    backend.train_from_iterator(SENTENCES * 5, trainer)
    tokenizer = PieceTokenizer(backend, special=SPECIAL)
    tokenizer.add_special_piece("<ent>")
    tokenizer.add_special_piece("<ent2>")
    return tokenizer.to_json()


def make_wordpiece() -> PieceTokenizer:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "ada", "london", ".", *"abcdefghijklmnopqrstuvwxyz"]
    backend = Tokenizer(models.WordPiece({piece: i for i, piece in enumerate(pieces)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return PieceTokenizer(backend, special=("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"))


def make_checkpoint(*, labels=None, seed=0, std=0.2, tokenizer=None, **changes) -> LukeCheckpoint:
    """A LUKE of two layers that reads 62 pieces at once. labels: of a span classifier, the first meaning no entity."""
    tokenizer = tokenizer or PieceTokenizer.from_json(tokenizer_json())
    settings = {
        "hidden_size": 32,
        "num_layers": 2,
        "num_heads": 2,
        "intermediate_size": 48,
        "entity_size": 12,
        "max_positions": 66,
        **changes,
    }
    config = LukeConfig(vocab_size=len(tokenizer), entity_vocab_size=len(ENTITIES), **settings)
    generator = torch.Generator().manual_seed(seed)
    tensors = {
        # Gains of LayerNorms scatter around 1, or next to nothing would get through to be learned.
        f"encoder.{name}": torch.randn(x.shape, generator=generator) * std + name.endswith("norm.weight")
        for name, x in LukeEncoder(config).state_dict().items()
    }
    if labels is not None:
        wide = 3 * config.hidden_size
        tensors["head.classifier.weight"] = torch.randn(len(labels), wide, generator=generator) * std
        tensors["head.classifier.bias"] = torch.randn(len(labels), generator=generator) * std
    return LukeCheckpoint(
        config=config,
        tensors=tensors,
        tokenizer=tokenizer,
        entities=EntityVocab(ENTITIES.items()),
        labels=None if labels is None else list(labels),
        task="encoder" if labels is None else "span_classification",
        source={"kind": "huggingface", "pad_token_id": tokenizer.pad_id},
    )


def make_fresh_ernie(entity_size: int) -> ErnieCheckpoint:
    """An ERNIE to pretrain: fresh, of three layers, one of each kind, that reads 62 pieces at once."""
    tokenizer = make_wordpiece()
    config = ErnieConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_layers=3,
        num_heads=2,
        intermediate_size=24,
        max_positions=64,
        entity_size=entity_size,
        entity_heads=2,
        layer_kinds=("sim", "mix", "norm"),
    )
    tensors = fresh_tensors(ernie_shapes(config), std=0.2, dtype=torch.float32, seed=0)
    return ErnieCheckpoint(config, tensors, tokenizer=tokenizer)


def make_ernie(vectors=None, *, seed=0, **changes) -> ErnieCheckpoint:
    """An ERNIE of three layers, one of each kind, for entity vectors of 12 numbers, that reads 38 pieces at once."""
    tokenizer = make_wordpiece()
    for piece in ("\u3002", "#", "$"):
        tokenizer.add_special_piece(piece)
    settings = {"hidden_size": 32, "num_layers": 3, "num_heads": 4, "intermediate_size": 40, "max_positions": 40}
    settings.update(entity_size=ENTITY_SIZE, entity_heads=2, layer_kinds=("sim", "mix", "norm"))
    config = ErnieConfig(vocab_size=len(tokenizer), **{**settings, **changes})
    generator = torch.Generator().manual_seed(seed)
    noise = {n: torch.empty(s).normal_(0.0, 0.3, generator=generator) for n, s in ernie_shapes(config).items()}
    tensors = {n: x + 1 if n.endswith("norm.weight") else x for n, x in noise.items()}
    return ErnieCheckpoint(config, tensors, tokenizer=tokenizer, source={"kind": "bert"}, vectors=vectors)

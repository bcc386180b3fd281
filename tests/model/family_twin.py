"""A slow, plainly written twin of the families' encoders: windows padded to one size, a mask that says which token sees
which, and what a place adds to a score by loops over pieces.

It reads an encoder's parameters, and nothing of its code. T tokens of a window: its words, then its entities, then
padding.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from spacy_luke.model.luke import LukeEncoder, Mentions, Windows


@dataclass(frozen=True)
class Token:
    """first, last: its pieces; number: among the entities of its window; None of a word."""

    first: int
    last: int
    number: int | None = None

    @property
    def kind(self) -> str:
        return "w" if self.number is None else "e"

    @property
    def pieces(self) -> range:
        return range(self.first, self.last + 1)


QUERIES = {"ww": "query", "we": "w2e_query", "ew": "e2w_query", "ee": "e2e_query"}


def norm(x: Tensor, module: torch.nn.Module) -> Tensor:
    """LayerNorm, written out."""
    centred = x - x.mean(-1, keepdim=True)
    variance = centred.square().mean(-1, keepdim=True)
    return centred / (variance + module.eps).sqrt() * module.weight + module.bias


def word_vectors(encoder: LukeEncoder, pieces: Tensor, types: Tensor | None) -> Tensor:
    words = encoder.words
    rows = words.piece.weight[pieces]
    places = torch.arange(len(pieces)) + encoder.config.position_offset
    x = rows + words.position.weight[places]
    if encoder.config.token_types:
        x = x + words.token_type.weight[torch.zeros_like(pieces) if types is None else types]
    return widen(norm(x, words.norm), words)


def entity_vectors(encoder: LukeEncoder, rows: Tensor, tokens: list[Token], types: Tensor | None) -> Tensor:
    entities = encoder.entities
    x = entities.table.weight[rows]
    if hasattr(entities.dense, "weight"):
        x = x @ entities.dense.weight.T
    means = [torch.stack([entities.position.weight[i] for i in token.pieces]).mean(0) for token in tokens]
    x = x + (torch.stack(means) if means else 0)
    if encoder.config.token_types:
        x = x + entities.token_type.weight[torch.zeros_like(rows) if types is None else types]
    return widen(norm(x, entities.norm), entities)


def widen(x: Tensor, module: torch.nn.Module) -> Tensor:
    """ELECTRA's projection."""
    project = getattr(module, "project", None)
    return x if not hasattr(project, "weight") else x @ project.weight.T + project.bias


def no_place(encoder: LukeEncoder, one: Token, other: Token) -> Tensor:
    return torch.zeros(encoder.config.num_heads)


def mpnet_place(encoder: LukeEncoder, one: Token, other: Token) -> Tensor:
    """The mean bias of all pairs of pieces, by T5's buckets: 0 to 7 exact, then logarithmic up to 128; 16 more where
    the other is after."""
    biases = []
    for i in one.pieces:
        for j in other.pieces:
            size = abs(j - i)
            bucket = size if size < 8 else min(8 + int(math.log(size / 8) / math.log(128 / 8) * 8), 15)
            biases.append(encoder.relative.weight[bucket + (16 if j > i else 0)])
    return torch.stack(biases).mean(0)


PLACES: dict[str, Callable[[LukeEncoder, Token, Token], Tensor]] = {"mpnet": mpnet_place}


def sees(one: Token, other: Token, mode: str, group: int) -> bool:
    if mode == "full" or other.number is None:
        return True
    if one.number is None:
        return False
    return mode == "together" or one.number // group == other.number // group


def run_twin(
    encoder: LukeEncoder, windows: Windows, mentions: Mentions, mode: str, *, group: int = 1
) -> tuple[Tensor, Tensor]:
    """Word states and entity states, packed. mode: "full"; "one_way", in groups of `group`; "together"."""
    lengths, counts = list(windows.lengths), list(mentions.counts)
    spots = list(zip(mentions.first_E.tolist(), mentions.last_E.tolist()))
    all_tokens, vectors = [], []
    for b, (pieces, rows) in enumerate(zip(windows.pieces_N.split(lengths), mentions.entities_E.split(counts))):
        place, row = sum(lengths[:b]), sum(counts[:b])
        tokens = [Token(i, i) for i in range(lengths[b])]
        entities = [Token(*spots[row + n], n) for n in range(counts[b])]
        types = None if windows.types_N is None else windows.types_N[place : place + lengths[b]]
        own = None if mentions.types_E is None else mentions.types_E[row : row + counts[b]]
        words = word_vectors(encoder, pieces, types)
        vectors.append(torch.cat([words, entity_vectors(encoder, rows, entities, own)]) if entities else words)
        all_tokens.append(tokens + entities)
    most = max(map(len, all_tokens))
    x = torch.stack([F.pad(v, (0, 0, 0, most - len(v))) for v in vectors])
    mask = torch.zeros(len(vectors), most, most, dtype=torch.bool)
    added = torch.zeros(len(vectors), encoder.config.num_heads, most, most)
    rows_of_places = []
    place_of = PLACES.get(encoder.config.family, no_place)
    for b, tokens in enumerate(all_tokens):
        for i, one in enumerate(tokens):
            for j, other in enumerate(tokens):
                mask[b, i, j] = sees(one, other, mode, group)
        pairs = [torch.stack([place_of(encoder, one, other) for other in tokens]) for one in tokens]
        square = torch.stack(pairs).permute(2, 0, 1)
        rows_of_places.append(F.pad(square, (0, most - len(tokens), 0, most - len(tokens))))
    added = added + torch.stack(rows_of_places)
    for layer in encoder.layers:
        x = run_layer(layer, x, all_tokens, mask, added)
    n = [sum(token.number is None for token in tokens) for tokens in all_tokens]
    words = torch.cat([x[b, : n[b]] for b in range(len(n))])
    return words, torch.cat([x[b, n[b] : len(all_tokens[b])] for b in range(len(n))])


def run_layer(layer: torch.nn.Module, x: Tensor, all_tokens: list[list[Token]], mask: Tensor, added: Tensor) -> Tensor:
    attention = layer.attention
    heads = attention.num_heads

    def split(linear: torch.nn.Linear) -> Tensor:
        """(B, H, T, K)."""
        return (x @ linear.weight.T + linear.bias).unflatten(-1, (heads, -1)).transpose(1, 2)

    keys, values = split(attention.key), split(attention.value)
    scores = torch.full_like(added, float("-inf"))
    for b, tokens in enumerate(all_tokens):
        kinds = "".join(token.kind for token in tokens)
        for one in "we":
            for other in "we":
                name = QUERIES[one + other] if attention.entity_aware else "query"
                rows = [i for i, kind in enumerate(kinds) if kind == one]
                columns = [i for i, kind in enumerate(kinds) if kind == other]
                if rows and columns:
                    part = split(getattr(attention, name))[b][:, rows] @ keys[b][:, columns].transpose(-1, -2)
                    part = part / math.sqrt(keys.shape[-1])
                    scores[b, :, torch.tensor(rows)[:, None], torch.tensor(columns)] = part
    scores = (scores + added).masked_fill(~mask[:, None], float("-inf"))
    real = mask.any(-1)[:, None, :, None]  # rows of padding see nothing
    weights = torch.where(real, scores, torch.zeros_like(scores)).softmax(-1) * real
    attended = (weights @ values).transpose(1, 2).flatten(-2)
    x = norm(x + attended @ attention.output.weight.T + attention.output.bias, layer.attention_norm)
    hidden = F.gelu(x @ layer.up.weight.T + layer.up.bias)
    return norm(x + hidden @ layer.down.weight.T + layer.down.bias, layer.output_norm)

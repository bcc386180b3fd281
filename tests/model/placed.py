"""DeBERTa and ModernBERT of noise, and both written out plainly: a window at a time, every pair of tokens, every mask.

T tokens of a window, words before entities; H heads, K head width.
"""

import torch
import torch.nn.functional as F

from spacy_luke.model.deberta import DebertaConfig, DebertaEncoder
from spacy_luke.model.luke import Mentions, Windows
from spacy_luke.model.modernbert import ModernBertConfig, ModernBertEncoder
from tests.model.noise import add_noise, make_mentions, make_windows

SIZES = {"vocab_size": 50, "entity_vocab_size": 9, "hidden_size": 24, "num_heads": 4, "intermediate_size": 40}
DEBERTA = {**SIZES, "num_layers": 3, "entity_size": 8, "max_positions": 60, "position_buckets": 8, "max_distance": 60}
MODERN = {**SIZES, "num_layers": 5, "entity_size": 8, "max_positions": 400, "local_attention": 12}
QUERIES = {"ww": "query", "we": "w2e_query", "ew": "e2w_query", "ee": "e2e_query"}
# Windows shorter than the buckets and the reach, longer than both, and longer than a block of near words.
LENGTHS = (9, 4, 37, 1, 12, 9, 150)
COUNTS = (5, 0, 6, 1, 0, 3, 8)
NAMES = ("deberta", "modernbert")


def make_encoder(name: str, **settings):
    if name == "deberta":
        longest = {"max_positions": max(LENGTHS), "max_distance": 60}
        return add_noise(DebertaEncoder(DebertaConfig(**{**DEBERTA, **longest, **settings})))
    return add_noise(ModernBertEncoder(ModernBertConfig(**{**MODERN, **settings})))


def make_batch(counts=COUNTS, lengths=LENGTHS):
    return make_windows(lengths), make_mentions(lengths, counts)


def run(encoder, windows: Windows, mentions: Mentions, mode: str, group: int | None = 1):
    if mode == "full":
        return encoder(windows, mentions)
    words = encoder.encode_words(windows)
    return words.states_ND, encoder.encode_entities(words, mentions, group_size=group)


def plainly(encoder, windows: Windows, mentions: Mentions, mode: str, group: int | None = 1):
    """What `run` gives, window by window."""
    words, entities = [], []
    places = (mentions.entities_E, mentions.first_E, mentions.last_E)
    parts = zip(windows.pieces_N.split(list(windows.lengths)), *(x.split(list(mentions.counts)) for x in places))
    for pieces, rows, first, last in parts:
        spots = [range(i, i + 1) for i in range(len(pieces))]
        spots += [range(a, b + 1) for a, b in zip(first.tolist(), last.tolist())]
        x = torch.cat([_begin(encoder.words, encoder.words.piece(pieces)), _entities(encoder, rows)])
        seen = torch.tensor([[_sees(i, j, len(pieces), mode, group) for j in range(len(x))] for i in range(len(x))])
        kinds = ["w"] * len(pieces) + ["e"] * len(rows)
        distances = torch.tensor([[nearest(a, b) for b in spots] for a in spots])
        step = _deberta_layer if isinstance(encoder, DebertaEncoder) else _modernbert_layer
        for number, layer in enumerate(encoder.layers):
            x = step(encoder, layer, number, x, spots, distances, kinds, seen)
        if isinstance(encoder, ModernBertEncoder):
            x = encoder.final_norm(x)
        words.append(x[: len(pieces)])
        entities.append(x[len(pieces) :])
    return torch.cat(words), torch.cat(entities)


def _begin(embeddings, x_TD):
    return embeddings.norm(x_TD)


def _entities(encoder, rows):
    entities = encoder.entities
    return _begin(entities, entities.dense(entities.table(rows)))


def _sees(i: int, j: int, words: int, mode: str, group: int | None) -> bool:
    if mode == "full" or j < words:
        return True
    return i >= words and (group is None or (i - words) // group == (j - words) // group)


def _pairs(layer, x, kinds):
    """The query of each pair of tokens (T, T, H, K), and keys and values (T, H, K)."""
    attention = layer.attention

    def heads(linear):
        return linear(x).unflatten(-1, (attention.num_heads, -1))

    names = QUERIES if attention.entity_aware else dict.fromkeys(QUERIES, "query")
    queries = {pair: heads(getattr(attention, name)) for pair, name in names.items()}
    q_TTHK = torch.stack([torch.stack([queries[a + b][i] for b in kinds]) for i, a in enumerate(kinds)])
    return q_TTHK, heads(attention.key), heads(attention.value)


def _mix(layer, scores_TTH, v_THK, seen):
    weights = scores_TTH.masked_fill(~seen[..., None], float("-inf")).softmax(1)
    return layer.attention.output(torch.einsum("ijh,jhk->ihk", weights, v_THK).flatten(1))


def nearest(one: range, other: range) -> int:
    """The distance of the nearest two pieces, from the second to the first."""
    return min((p - q for p in one for q in other), key=abs)


def _deberta_layer(encoder, layer, number, x, spots, distances, kinds, seen):
    from transformers.models.deberta_v2.modeling_deberta_v2 import make_log_bucket_position

    config, attention = encoder.config, layer.attention
    buckets = make_log_bucket_position(distances, config.position_buckets, config.max_distance).long()
    rows = (buckets + config.span).clamp(0, 2 * config.span - 1)
    table = encoder.relative.norm(encoder.relative.table.weight)
    to_positions, of_positions = (
        linear(table).unflatten(-1, (attention.num_heads, -1))[rows] for linear in (attention.key, attention.query)
    )
    q_TTHK, k_THK, v_THK = _pairs(layer, x, kinds)
    scores = torch.einsum("ijhk,jhk->ijh", q_TTHK, k_THK) + (q_TTHK * to_positions).sum(-1)
    scores = scores + torch.einsum("jhk,ijhk->ijh", k_THK, of_positions)
    attended = _mix(layer, scores / (3 * k_THK.shape[-1]) ** 0.5, v_THK, seen)
    x = layer.attention_norm(x + attended)
    return layer.output_norm(x + layer.down(F.gelu(layer.up(x))))


def _modernbert_layer(encoder, layer, number, x, spots, distances, kinds, seen):
    config = encoder.config
    q_TTHK, k_THK, v_THK = _pairs(layer, layer.attention_norm(x) if number else x, kinds)
    local = number % config.global_every > 0
    theta = config.local_theta if local else config.global_theta
    half = k_THK.shape[-1] // 2
    steps = theta ** -(torch.arange(half, dtype=x.dtype) / half)
    centres = torch.tensor([sum(spot) / len(spot) for spot in spots], dtype=x.dtype)
    turns = torch.polar(torch.ones(len(spots), half, dtype=x.dtype), centres[:, None] * steps)[:, None]

    def turned(heads, turn):  # a pair of numbers is a complex one, which is turned by its position's angle
        return torch.complex(heads[..., :half], heads[..., half:]) * turn

    q, k = turned(q_TTHK, turns[:, None]), turned(k_THK, turns)
    scores = torch.einsum("ijhk,jhk->ijh", q, k.conj()).real / (2 * half) ** 0.5
    if local:
        seen = seen & (distances.abs() <= config.local_attention // 2)
    x = x + _mix(layer, scores, v_THK, seen)
    states, gates = layer.up(layer.output_norm(x)).chunk(2, -1)
    return x + layer.down(F.gelu(states) * gates)

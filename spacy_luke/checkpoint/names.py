"""Names of parameters: two-column tables, theirs and ours, used in both directions.

Theirs are those of Hugging Face's LUKE classes, of the original archives (which have no root prefix), of the original
authors' AllenNLP models, and of plain RoBERTa, XLM-R and BERT. A key is mapped, tied (a second name of a mapped
tensor), dropped for a reason, or unknown.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..model.config import LukeConfig
from ..text.cases import CASES

WORD_TABLE = "encoder.words.piece.weight"  # our names of tensors that others ask for by name
CASE_TABLE = "encoder.words.case.weight"
ENTITY_TABLE = "encoder.entities.table.weight"
BY_ENTITY = (ENTITY_TABLE, "entity_head.bias")  # one row for each entity

NameTable = tuple[tuple[str, str], ...]
Patterns = tuple[tuple[str, str], ...]  # (pattern, reason); a pattern must match the whole name

WORDS: NameTable = (
    ("embeddings.word_embeddings.weight", "encoder.words.piece.weight"),
    ("embeddings.position_embeddings.weight", "encoder.words.position.weight"),
    ("embeddings.token_type_embeddings.weight", "encoder.words.token_type.weight"),
    ("embeddings.LayerNorm.weight", "encoder.words.norm.weight"),
    ("embeddings.LayerNorm.bias", "encoder.words.norm.bias"),
)
CASE: NameTable = (("embeddings.case_embeddings.weight", "encoder.words.case.weight"),)  # ours alone
ENTITY_EMBEDDINGS: NameTable = (
    ("entity_embeddings.entity_embeddings.weight", "encoder.entities.table.weight"),
    ("entity_embeddings.position_embeddings.weight", "encoder.entities.position.weight"),
    ("entity_embeddings.token_type_embeddings.weight", "encoder.entities.token_type.weight"),
    ("entity_embeddings.LayerNorm.weight", "encoder.entities.norm.weight"),
    ("entity_embeddings.LayerNorm.bias", "encoder.entities.norm.bias"),
)
ENTITY_DENSE: NameTable = (("entity_embeddings.entity_embedding_dense.weight", "encoder.entities.dense.weight"),)
LAYER_OUTPUTS: NameTable = (
    ("encoder.layer.{i}.attention.output.dense.{p}", "encoder.layers.{i}.attention.output.{p}"),
    ("encoder.layer.{i}.attention.output.LayerNorm.{p}", "encoder.layers.{i}.attention_norm.{p}"),
    ("encoder.layer.{i}.intermediate.dense.{p}", "encoder.layers.{i}.up.{p}"),
    ("encoder.layer.{i}.output.dense.{p}", "encoder.layers.{i}.down.{p}"),
    ("encoder.layer.{i}.output.LayerNorm.{p}", "encoder.layers.{i}.output_norm.{p}"),
)
LAYER: NameTable = (
    ("encoder.layer.{i}.attention.self.query.{p}", "encoder.layers.{i}.attention.query.{p}"),
    ("encoder.layer.{i}.attention.self.key.{p}", "encoder.layers.{i}.attention.key.{p}"),
    ("encoder.layer.{i}.attention.self.value.{p}", "encoder.layers.{i}.attention.value.{p}"),
    *LAYER_OUTPUTS,
)
_EXTRA_QUERIES: NameTable = (
    ("encoder.layer.{i}.attention.self.w2e_query.{p}", "encoder.layers.{i}.attention.w2e_query.{p}"),
    ("encoder.layer.{i}.attention.self.e2w_query.{p}", "encoder.layers.{i}.attention.e2w_query.{p}"),
    ("encoder.layer.{i}.attention.self.e2e_query.{p}", "encoder.layers.{i}.attention.e2e_query.{p}"),
)
POOLER: NameTable = (("pooler.dense.{p}", "pooler.{p}"),)
# From here on, names have no root prefix.
LM_HEAD: NameTable = (
    ("lm_head.dense.{p}", "lm_head.dense.{p}"),
    ("lm_head.layer_norm.{p}", "lm_head.norm.{p}"),
    ("lm_head.bias", "lm_head.bias"),
)
BERT_LM_HEAD: NameTable = (
    ("cls.predictions.transform.dense.{p}", "lm_head.dense.{p}"),
    ("cls.predictions.transform.LayerNorm.{p}", "lm_head.norm.{p}"),
    ("cls.predictions.bias", "lm_head.bias"),
)
ENTITY_HEAD: NameTable = (
    ("entity_predictions.transform.dense.{p}", "entity_head.dense.{p}"),
    ("entity_predictions.transform.LayerNorm.{p}", "entity_head.norm.{p}"),
    ("entity_predictions.bias", "entity_head.bias"),
)
# Of the original's entity disambiguation (examples/entity_disambiguation/model.py), beside the entity embeddings.
_MASK_VECTOR: NameTable = (("entity_embeddings.mask_embedding", "entity_mask"),)
TASK_HEADS: NameTable = (("classifier.{p}", "head.classifier.{p}"), ("qa_outputs.{p}", "head.qa_outputs.{p}"))
# Heads of the original code (examples/legacy/*/model.py) that have names of their own.
_ORIGINAL_HEADS: NameTable = (("typing.{p}", "head.classifier.{p}"), ("scorer.{p}", "head.classifier.{p}"))
_ALLENNLP_HEADS: NameTable = (
    ("classifier.{p}", "head.classifier.{p}"),
    ("span_scoring_layer.{p}", "head.qa_outputs.{p}"),
)

_TIED: NameTable = (
    ("lm_head.decoder.weight", "encoder.words.piece.weight"),
    ("lm_head.decoder.bias", "lm_head.bias"),
    ("entity_predictions.decoder.weight", "encoder.entities.table.weight"),
)
_BERT_TIED: NameTable = (
    ("cls.predictions.decoder.weight", "encoder.words.piece.weight"),
    ("cls.predictions.decoder.bias", "lm_head.bias"),
)
_DROPPED: Patterns = (
    (r".*\.(position_ids|token_type_ids)", "a buffer, not a parameter"),
    (r"cls\.seq_relationship\..*", "the next-sentence head of BERT's pretraining"),
    (r"cls_entity_predictions\..*", "the page-entity head of the original's pretraining"),
)
ALLENNLP_DROPPED = (
    (r"answer_type_classifier\..*", "AllenNLP's answer types, which LUKE's question answering does not use"),
)
PLAIN_DROPPED = ((r"(classifier|qa_outputs)\..*", "a task head of a plain model"),)
# The released mLUKE and luke-japanese files hold these although their configs switch them off.
_QUERIES_DROPPED = ((r".*\.(w2e|e2w|e2e)_query\.(weight|bias)", "an extra query, and entity-aware attention is off"),)


def luke_names(config: LukeConfig, *, root: str, disambiguation: bool = False) -> dict[str, str]:
    """Every name that a LUKE checkpoint may have, theirs -> ours. root: "luke." or "". disambiguation: whether it is of
    the original's entity disambiguation."""
    rooted = _encoder_table(config) + POOLER + (_MASK_VECTOR if disambiguation else ())
    return {**_expand(rooted, config, root=root), **_expand(LM_HEAD + ENTITY_HEAD + TASK_HEADS, config)}


def archive_names(config: LukeConfig) -> dict[str, str]:
    """The same for the original archives, which may also have BERT's masked-word head, and heads of their own."""
    return {**luke_names(config, root=""), **_expand(BERT_LM_HEAD + _ORIGINAL_HEADS, config)}


def allennlp_names(config: LukeConfig, *, root: str) -> dict[str, str]:
    """The same for the authors' AllenNLP models. root: where their embedder is, with a dot at its end."""
    return {**_expand(_encoder_table(config) + POOLER, config, root=root), **_expand(_ALLENNLP_HEADS, config)}


def find_root(names: Iterable[str], roots: tuple[str, ...], *, word: str = WORDS[0][0]) -> str:
    """The prefix of the encoder's names. word: that of the table of pieces, without it. Raises ValueError where there
    are no word embeddings."""
    names = set(names)
    found = [root for root in roots if root + word in names]
    if len(found) != 1:
        raise ValueError(
            f"Expected one table of word embeddings, named {' or '.join(root + word for root in roots)}, but found "
            f"{len(found)}. The first of the checkpoint's {len(names)} names are {sorted(names)[:5]}."
        )
    return found[0]


def encoder_shapes(config: LukeConfig) -> dict[str, tuple[int, ...]]:
    """Our names and shapes of all parameters of LUKE's own encoder."""
    return shapes_by_name(_expand(_encoder_table(config), config).values(), config)


def shapes_by_name(
    names: Iterable[str], config: LukeConfig, *, sizes: Mapping[str, tuple[int, ...]] | None = None
) -> dict[str, tuple[int, ...]]:
    """Shapes of parameters by their names: those of norms are (D,), of other weights (D, D) but for some, by the last
    part of the module's name or by the whole name; a bias has the first size of its weight. sizes: further ones."""
    d, f, e = config.hidden_size, config.intermediate_size, config.entity_size
    ends: dict[str, tuple[int, ...]] = {
        "piece": (config.vocab_size, d),
        "case": (len(CASES), d),
        "position": (config.max_positions, d),
        "token_type": (config.token_types, d),
        "table": (config.entity_vocab_size, e),
        "dense": (d, e),
        "up": (f, d),
        "down": (d, f),
    }
    ends.update(sizes or {})
    shapes: dict[str, tuple[int, ...]] = {}
    for name in names:
        whole, _, kind = name.rpartition(".")
        module = whole.rpartition(".")[2]
        usual = (d,) if module.endswith("norm") else (d, d)
        weight = ends.get(whole, ends.get(module, usual))
        shapes[name] = weight if kind == "weight" else weight[:1]
    return shapes


def head_shapes(config: LukeConfig) -> dict[str, dict[str, tuple[int, ...]]]:
    """Our names and shapes of the heads that every checkpoint may have, by head; a head is whole or absent."""
    d, e = config.hidden_size, config.entity_size
    vectors = ("dense.bias", "norm.weight", "norm.bias")
    return {
        "pooler": {"pooler.weight": (d, d), "pooler.bias": (d,)},
        "lm_head": {
            "lm_head.dense.weight": (d, d),
            **{f"lm_head.{name}": (d,) for name in vectors},
            "lm_head.bias": (config.vocab_size,),
        },
        "entity_head": {
            "entity_head.dense.weight": (e, d),
            **{f"entity_head.{name}": (e,) for name in vectors},
            "entity_head.bias": (config.entity_vocab_size,),
        },
    }


def query_table(config: LukeConfig) -> NameTable:
    """Names of the extra queries; none where entity-aware attention is off."""
    if not config.entity_aware:
        return ()
    if config.has_biases:
        return _EXTRA_QUERIES
    return tuple(
        (theirs.format(i="{i}", p="weight"), ours.format(i="{i}", p="weight")) for theirs, ours in _EXTRA_QUERIES
    )


def extra_queries(config: LukeConfig) -> dict[str, str]:
    """Our names of the extra queries -> the name of the query that they are copied from where they are missing.
    Empty where entity-aware attention is off."""
    pairs: dict[str, str] = {}
    for name in _expand(query_table(config), config).values():
        head, _, kind = name.rsplit(".", 2)
        pairs[name] = f"{head}.query.{kind}"
    return pairs


def sort_names(
    names: Iterable[str],
    table: dict[str, str],
    *,
    entity_aware: bool,
    dropped: Patterns = (),
    tied: NameTable = (),
) -> "SortedNames":
    """Say of each name in a file what becomes of it. Raises ValueError that lists the unknown names.

    dropped, tied: patterns and reasons, and second names, besides those that hold for every checkpoint.
    """
    ties = dict(_TIED + _BERT_TIED + tied)
    dropped_patterns = _DROPPED + dropped + (() if entity_aware else _QUERIES_DROPPED)
    result = SortedNames({}, {}, {})
    unknown: list[str] = []
    for name in sorted(names):
        current = _modern(name)
        reason = next((reason for pattern, reason in dropped_patterns if re.fullmatch(pattern, current)), None)
        if current in table:
            ours = table[current]
            if ours in result.mapped:
                raise ValueError(f"{name!r} and {result.mapped[ours]!r} are names of one tensor; expected only one.")
            result.mapped[ours] = name
        elif current in ties:
            result.tied[name] = ties[current]
        elif reason is not None:
            result.dropped[name] = reason
        else:
            unknown.append(name)
    if unknown:
        raise ValueError(
            f"The checkpoint has {len(unknown)} tensors that its config does not account for: {_some(unknown)}. "
            "Check that config.json belongs to these weights (number of layers, entity_emb_size)."
        )
    return result


def _encoder_table(config: LukeConfig) -> NameTable:
    table = WORDS + (CASE if config.case_feature else ()) + ENTITY_EMBEDDINGS
    if config.entity_size != config.hidden_size:
        table += ENTITY_DENSE
    return table + LAYER + (_EXTRA_QUERIES if config.entity_aware else ())


def _expand(table: NameTable, config: LukeConfig, *, root: str = "") -> dict[str, str]:
    return expand(table, layers=range(config.num_layers), root=root)


def expand(table: NameTable, *, layers: Sequence[int], root: str = "") -> dict[str, str]:
    """Fill in {i}, the layer, and {p}, weight or bias."""
    names = {}
    for theirs, ours in table:
        for i in layers if "{i}" in theirs else (0,):
            for p in ("weight", "bias") if "{p}" in theirs else ("",):
                names[root + theirs.format(i=i, p=p)] = ours.format(i=i, p=p)
    return names


def _modern(name: str) -> str:
    """Names converted from TensorFlow call the parameters of LayerNorm gamma and beta."""
    name = re.sub(r"(LayerNorm(_ent)?)\.gamma$", r"\1.weight", name)
    return re.sub(r"(LayerNorm(_ent)?)\.beta$", r"\1.bias", name)


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 10} more" if len(names) > 10 else ""
    return ", ".join(repr(name) for name in names[:10]) + more


@dataclass(frozen=True)
class SortedNames:
    """mapped: ours -> theirs; tied: theirs -> ours; dropped: theirs -> reason."""

    mapped: dict[str, str]
    tied: dict[str, str]
    dropped: dict[str, str]

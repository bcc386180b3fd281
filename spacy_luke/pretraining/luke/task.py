"""LUKE's pretraining task: masked words, masked entities, and if wanted the entity of the page (LUKE, section 3.3;
luke/pretraining/model.py).

The softmax is over all entities, or over sampled ones. Of 500,000 entities and a table of 256 columns, the table takes
512 MB in float32, and its gradient and Adam's two moments 512 MB each; an entity that is asked takes 2 MB of logits and
as much for their gradient. With 8,192 sampled entities (`EntitySampler`) its logits take 32 KB, and no product is with
the whole table. Measured on one core with 64 entities asked, gradient and AdamW together: 1.6 s for all entities, 1.2 s
for sampled ones with a dense gradient, which AdamW reads as a whole, and 0.03 s with a sparse one, which saves its 512
MB, too, but moves and decays the rows alone that a batch has. A GPU moves the dense table in some milliseconds, and
FSDP has no sparse gradients.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ...checkpoint.assemble import copy_queries
from ...checkpoint.contents import LukeCheckpoint
from ...checkpoint.names import BY_ENTITY, ENTITY_TABLE
from ...checkpoint.special import add_special_entities
from ...entity_vocab import EntityVocab
from ...model.config import LukeConfig
from ...model.families import build_encoder
from ...model.fresh import initialize
from ...model.losses import summed_cross_entropy
from ...model.luke import first_rows
from ...model.masked import MaskedEntityHead, MaskedWordHead, PageEntityHead
from ...model.transfer import to_device
from ...vectors.store import EntityVectors
from ..measures import Measures, Totals, share_of
from .windows import LukeBatch

_PARTS = {"words": ("^lm_head[.]",), "entities": ("^entity_head[.]", "^encoder[.]entities[.]")}  # of one task alone


def idle_patterns(tasks: Mapping[str, bool]) -> list[str]:
    """Patterns of the names of parameters that no loss reaches; they must not decay."""
    return [pattern for task, patterns in _PARTS.items() if not tasks[task] for pattern in patterns]


class LukePretraining(nn.Module):
    """The encoder with its heads. words, entities, pages: which of the three losses there are; their sum is learned.
    sparse: the entity table gets sparse gradients, where entities are sampled. mask_rows: as of `LukeEncoder`."""

    def __init__(
        self,
        config: LukeConfig,
        mask_rows: Sequence[int] = (),
        *,
        words: bool = True,
        entities: bool = True,
        pages: bool = False,
        sparse: bool = False,
    ):
        super().__init__()
        if pages and not entities:
            raise ValueError(
                "The entity of the page is told by the entity table, which only learns with masked entities."
            )
        if words and config.embedding_width != config.hidden_size:
            raise ValueError(
                f"Masked words are told by the table of pieces, which must be as wide as the layers "
                f"({config.hidden_size}), but its rows have {config.embedding_width} numbers, as ELECTRA's may. Switch "
                "masked words off, or begin with another encoder."
            )
        self.tasks = {"words": words, "entities": entities, "pages": pages}
        self.encoder = build_encoder(config, mask_rows)
        self.encoder.entities.table.sparse = self.sparse = sparse
        self.lm_head = MaskedWordHead(config)
        self.entity_head = MaskedEntityHead(config)
        self.page_head = PageEntityHead(config) if pages else None

    @property
    def device(self) -> torch.device:
        return self.encoder.words.piece.weight.device

    def forward(self, batch: LukeBatch, totals: Totals | None = None) -> tuple[Tensor, Measures]:
        """totals: what the losses' sums are divided by, those of the batch itself where None.

        RETURNS: the loss, and by name sum and number of what is averaged for the reports.
        """
        table_RE = self.encoder.entities.table.weight
        if self.tasks["words"] or self.tasks["pages"]:
            words_ND, entities_ED = self.encoder(batch.windows, batch.mentions)
        else:
            words_ND, entities_ED = None, self.encoder.entity_states(batch.windows, batch.mentions)
        sums: dict[str, Tensor] = {}
        measured: Measures = {}
        if self.tasks["words"]:
            logits_KV = self.lm_head(words_ND.index_select(0, batch.masked_K), self.encoder.words.piece.weight)
            sums["words"] = _measure("mlm", logits_KV, batch.pieces_K, measured)
        if self.tasks["entities"]:
            logits_AR, gold_A = self._entity_logits(entities_ED.index_select(0, batch.asked_A), table_RE, batch)
            sums["entities"] = _measure("entity", logits_AR, gold_A, measured)
        if self.page_head is not None:
            guessed_BE = self.page_head(words_ND[to_device(first_rows(batch.windows.lengths), self.device)]).float()
            errors_B = (guessed_BE - F.embedding(batch.pages_B, table_RE, sparse=self.sparse).float()).pow(2).mean(1)
            sums["pages"] = errors_B.sum()
            measured["page"] = (sums["pages"].detach(), _number(len(errors_B), errors_B))
        shares = [x / share_of(totals, batch.counts, name) for name, x in sums.items()]
        return torch.stack(shares).sum(), measured

    def _entity_logits(self, states_AD: Tensor, table_RE: Tensor, batch: LukeBatch) -> tuple[Tensor, Tensor]:
        if batch.sampled is None:
            return self.entity_head(states_AD, table_RE), batch.gold_A
        logits_AC = self.entity_head.sampled(
            states_AD,
            table_RE,
            gold_K=batch.gold_A,
            sampled_C=batch.sampled.rows_C,
            log_weight_C=batch.sampled.log_weight_C,
            sparse=self.sparse,
        )
        return logits_AC, torch.zeros_like(batch.gold_A)


def _measure(name: str, logits_KC: Tensor, gold_K: Tensor, measured: Measures) -> Tensor:
    """The summed loss; it and the hits are noted."""
    total, _ = summed_cross_entropy(logits_KC, gold_K)
    count = _number(len(gold_K), total)
    # .max and not .argmax, which is five times as slow in bfloat16 on a CPU; of equal logits both take the first.
    hits = (logits_KC.detach().max(-1).indices == gold_K).sum().float()
    measured[name], measured[f"{name}_acc"] = (total.detach(), count), (hits, count)
    return total


def _number(n: int, like: Tensor) -> Tensor:
    return torch.full((), float(n), device=like.device)


def load_luke_pretraining(
    checkpoint: LukeCheckpoint,
    vocab: EntityVocab,
    *,
    seed: int,
    words: bool = True,
    entities: bool = True,
    pages: bool = False,
    sparse: bool = False,
    vectors: EntityVectors | None = None,
) -> LukePretraining:
    """A model that begins from a checkpoint, with an entity table of `vocab`.

    Rows of entities that the checkpoint knows by the same name are its own; others begin as their vector in `vectors`
    where that has one, and fresh else, as do heads that the checkpoint lacks. The checkpoint's report says so.
    """
    config = replace(checkpoint.config, entity_vocab_size=len(vocab))
    model = LukePretraining(config, vocab.mask_rows, words=words, entities=entities, pages=pages, sparse=sparse)
    generator = torch.Generator().manual_seed(seed)
    initialize(model, std=config.initializer_range, generator=generator)
    state = model.state_dict()
    fresh = sorted({name.split(".")[0] for name in state if name not in checkpoint.tensors and name not in BY_ENTITY})
    if "encoder" in fresh:
        lacking = [name for name in state if name.startswith("encoder.") and name not in checkpoint.tensors]
        raise ValueError(f"The checkpoint lacks {lacking[:5]} of the encoder; it cannot be trained.")
    if fresh:
        checkpoint.report.append(f"initialised {', '.join(fresh)}: fresh, seed {seed}")
    with torch.no_grad():
        for name, tensor in state.items():
            if name in checkpoint.tensors and name not in BY_ENTITY:
                tensor.copy_(checkpoint.tensors[name])
        _fill_rows(state, checkpoint, vocab, vectors)
    return model


def _fill_rows(
    state: dict[str, Tensor], checkpoint: LukeCheckpoint, vocab: EntityVocab, vectors: EntityVectors | None
) -> None:
    """Rows of entities that are known by name."""
    names = vocab.names()
    if vectors is not None:
        if vectors.size != state[ENTITY_TABLE].shape[1]:
            raise ValueError(
                f"The entity table has {state[ENTITY_TABLE].shape[1]} columns, but the vectors in {vectors.path} have "
                f"{vectors.size} numbers. Use vectors of that size, or set entity_size of the checkpoint."
            )
        rows = vectors.rows([row[0] if row else "" for row in names])
        found = (rows >= 0).nonzero()[0]
        state[ENTITY_TABLE][torch.from_numpy(found)] = torch.from_numpy(vectors.gather(rows[found]))
        checkpoint.report.append(f"{len(found):,} of {len(names):,} entities began as vectors of {vectors.path.name}")
    if checkpoint.entities is None:
        return
    own = ((row, checkpoint.entities.row(row_names[0])) for row, row_names in enumerate(names) if row_names)
    known = [(row, old) for row, old in own if old is not None]
    if known:
        new, old = (torch.tensor(x) for x in zip(*known, strict=True))
        for name in BY_ENTITY:
            if name in checkpoint.tensors:
                state[name][new] = checkpoint.tensors[name][old].to(state[name].dtype)
    checkpoint.report.append(f"{len(known):,} of {len(names):,} entities are the checkpoint's own")


def to_luke_checkpoint(
    tensors: dict[str, Tensor],
    started: LukeCheckpoint,
    vocab: EntityVocab,
    *,
    tasks: Mapping[str, bool],
    entity_aware: bool = False,
) -> LukeCheckpoint:
    """What `write_huggingface` writes and `read_checkpoint` reads: encoder, and the heads that were trained or that the
    model began with. The page's head, for which the layout has no place, is left out.

    tensors: the model's state; started: what it began with; tasks: those of `LukePretraining`. entity_aware: with the
    extra queries of entity-aware attention, copies of the ordinary one, which fine-tuning then learns (section 4).
    """
    heads = [name for task, name in (("words", "lm_head."), ("entities", "entity_head.")) if tasks[task]]
    kept = {
        name: x.detach().cpu().contiguous()
        for name, x in tensors.items()
        if name.startswith(("encoder.", *heads)) or name in started.tensors
    }
    config = replace(started.config, entity_vocab_size=len(vocab), entity_aware=entity_aware)
    trained = replace(started, config=config, tensors=kept, entities=vocab, task="masked_lm", labels=None)
    trained.report = list(started.report)
    if entity_aware and not started.config.entity_aware:
        copy_queries(kept, config)
        trained.report.append("initialised w2e_query, e2w_query and e2e_query of each layer: copies of query")
    add_special_entities(trained)
    return trained

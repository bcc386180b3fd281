"""ERNIE's pretraining task: masked words, next sentence and denoised entities (dEA; section 3.4,
code/run_pretrain.py)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor, nn

from ...checkpoint.assemble import fresh_tensors
from ...checkpoint.contents import ErnieCheckpoint
from ...model.ernie import ErnieConfig, ErnieEncoder
from ...model.ernie_heads import PretrainingHeads
from ...model.losses import pretraining_losses
from ..measures import Measures, Totals, share_of
from .corruption import CORRUPTIONS, ErnieBatch


class ErniePretraining(nn.Module):
    """The encoder with its three heads. The vectors of the entities are no parameters: they stay as they are.

    transform: the code's dEA head; False: the paper's linear layer. dea: whether dEA's loss counts (the paper's
    ablation leaves it out); it is measured all the same.
    """

    def __init__(self, config: ErnieConfig, *, transform: bool = True, dea: bool = True):
        super().__init__()
        if config.family != "bert":
            raise ValueError(
                f"ERNIE's pretraining writes the original's layout, whose words are BERT's, but this encoder is of the "
                f"family {config.family!r}. Begin with a BERT."
            )
        self.dea = dea
        self.encoder = ErnieEncoder(config)
        self.heads = PretrainingHeads(config, transform=transform)

    def forward(self, batch: ErnieBatch, totals: Totals | None = None) -> tuple[Tensor, Measures]:
        """totals: over how many the losses are averaged, those of the batch itself where None.

        RETURNS: the sum of the three losses, and by name sum and number of what is averaged for the reports.
        """
        words_ND, _ = self.encoder(batch.windows, batch.knowledge)
        logits = self.heads(
            words_ND,
            self.encoder.pool(words_ND, batch.windows.lengths),
            self.encoder.words.piece.weight,
            masked_K=batch.masked_K,
            linked_K=batch.linked_A,
            candidates_CH=batch.candidates_CH,
        )
        if batch.allowed_AC is not None:
            logits = (*logits[:2], logits[2].masked_fill(~batch.allowed_AC, -torch.inf))
        losses = pretraining_losses(logits, (batch.pieces_K, batch.random_B, batch.gold_A))
        counts = batch.counts
        shares = {name: counts[name] / share_of(totals, counts, name) for name in counts}
        learned = zip(("mlm", "nsp", "dea") if self.dea else ("mlm", "nsp"), losses)
        first, *others = (loss * shares[name] for name, loss in learned)
        return sum(others, start=first), _measure(batch, losses, [x.detach() for x in logits])


@torch.no_grad()
def _measure(batch: ErnieBatch, losses: Sequence[Tensor], logits: Sequence[Tensor]) -> Measures:
    """Losses, accuracies, of entities also by what happened to them, and the accuracy of choosing blindly."""
    one = torch.ones((), device=losses[0].device)
    measured = {name: (loss.detach(), one) for name, loss in zip(("mlm", "nsp", "dea"), losses)}
    gold = (batch.pieces_K, batch.random_B, batch.gold_A)
    hits = {
        name: (scores.argmax(-1) == right).float() if len(right) else right.float()
        for name, scores, right in zip(("mlm", "nsp", "dea"), logits, gold)
    }
    measured.update({f"{name}_acc": (x.sum(), one * len(x)) for name, x in hits.items()})
    for kind, name in enumerate(CORRUPTIONS):
        chosen = batch.kinds_A == kind
        measured[f"dea_acc_{name}"] = ((hits["dea"] * chosen).sum(), chosen.sum())
    if batch.allowed_AC is None:
        chance = one * len(batch.gold_A) / max(1, len(batch.candidates_CH) - 1)
    else:
        chance = (1 / batch.allowed_AC.sum(-1)).sum()
    measured["dea_chance"] = (chance, one * len(batch.gold_A))
    return measured


def load_pretraining(
    checkpoint: ErnieCheckpoint, *, seed: int, transform: bool = True, dea: bool = True
) -> ErniePretraining:
    """The model of a checkpoint; heads that it lacks are fresh, which its report then says."""
    model = ErniePretraining(checkpoint.config, transform=transform, dea=dea)
    wanted = {_checkpoint_name(name): tuple(x.shape) for name, x in model.state_dict().items()}
    missing = {name: shape for name, shape in wanted.items() if name not in checkpoint.tensors}
    if unfit := sorted(name for name in missing if name.startswith("encoder.")):
        raise ValueError(f"The checkpoint lacks {unfit} of the encoder; it cannot be trained.")
    std = checkpoint.config.initializer_range
    fresh = fresh_tensors(missing, std=std, dtype=torch.float32, seed=seed)
    if missing:
        checkpoint.report.append(f"initialised {sorted(missing)}: fresh, seed {seed}")
    tensors = {**checkpoint.tensors, **fresh}
    model.load_state_dict({name: tensors[_checkpoint_name(name)].float() for name in model.state_dict()})
    return model


def to_checkpoint(tensors: Mapping[str, Tensor], started_from: ErnieCheckpoint) -> ErnieCheckpoint:
    """What `write_ernie` writes and `read_ernie` reads: encoder and heads. tensors: the model's state."""
    found = {_checkpoint_name(name): x.detach().cpu().contiguous() for name, x in tensors.items()}
    return replace(started_from, tensors=found, task="pretraining", labels=None)


def _checkpoint_name(name: str) -> str:
    return name.removeprefix("heads.")

"""What a model measures on its batches: sums and numbers by name, added up over batches and processes."""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ..distributed.processes import Processes
from ..model.precision import passes_in
from ..model.transfer import to_device, to_host
from .stream import TrainingBatch

Measures = dict[str, tuple[Tensor, Tensor]]  # sum and number of what is averaged
Totals = Mapping[str, float | Tensor]  # the counts of all batches of a step
Sums = dict[str, list[float]]  # as Measures, of all batches since the last report


def total_counts(batches: Sequence[TrainingBatch]) -> dict[str, float]:
    return {name: float(sum(batch.counts[name] for batch in batches)) for name in batches[0].counts}


def share_of(totals: Totals | None, counts: Mapping[str, int], name: str) -> float | Tensor:
    """What a loss that is a sum is divided by: the count of the step, on the device where processes have added it up,
    that of the batch itself where `totals` is None."""
    total = counts[name] if totals is None else totals[name]
    return total.clamp(min=1) if isinstance(total, Tensor) else max(1.0, total)


def add_measured(sums: Sums, measured: Sequence[Measures], processes: Processes) -> None:
    """Exact in float64 whenever it is called, so that a saved state in between changes nothing."""
    new: dict[tuple[str, int], float] = {}
    found = [((name, i), value) for part in measured for name, pair in part.items() for i, value in enumerate(pair)]
    for (key, _), value in zip(found, to_host([value for _, value in found]), strict=True):
        new[key] = new.get(key, 0.0) + float(value)
    for (name, i), total in processes.sum(new).items():
        sums.setdefault(name, [0.0, 0.0])[i] += total


def averages(sums: Sums) -> dict[str, float | None]:
    """None where nothing was counted."""
    return {name: total / count if count else None for name, (total, count) in sums.items()}


def average(
    model: nn.Module,
    *,
    batches: Sequence[TrainingBatch],
    processes: Processes = Processes(),
    dtype: torch.dtype = torch.float32,
) -> dict[str, float]:
    """Averages over batches of what the model measures, without dropout where the caller has switched it off. Each
    process measures a share of them; all must call it. dtype: of the products."""
    sums: Sums = {}
    device = next(model.parameters()).device
    mine = batches if processes.is_sharded else batches[processes.rank :: processes.size]
    with torch.no_grad(), passes_in(dtype, device):
        found = [model(to_device(batch, device))[1] for batch in mine]
    add_measured(sums, found, Processes())
    if not processes.is_sharded:  # some may have had no batch
        parts = processes.gather(sums)
        names = {name: None for part in parts for name in part}
        sums = {name: [sum(part.get(name, [0.0, 0.0])[i] for part in parts) for i in (0, 1)] for name in names}
    return {name: total / count for name, (total, count) in sums.items() if count}

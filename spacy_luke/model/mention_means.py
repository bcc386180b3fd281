"""The mean of each mention's pieces, with which [MASK] entities may begin.

N packed pieces, E mentions, D model width, W pieces of the longest mention.
"""

from collections.abc import Sequence

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from .transfer import to_device

MOST_PIECES = 30  # of a mention, its first ones, that count: as many as positions of it do in the original


def mean_pieces(
    rows_ND: Tensor, lengths: Sequence[int], first_E: Tensor, last_E: Tensor, counts: Sequence[int]
) -> Tensor:
    """The mean of the rows first..last of each mention, of which the first MOST_PIECES count: (E, D).

    rows_ND: vectors of packed pieces; lengths, counts: pieces and mentions of each window; first_E, last_E: counted in
    the mention's window, both inclusive.
    """
    if not len(first_E):
        return rows_ND.new_zeros(0, rows_ND.shape[1])
    sizes_B = np.array(lengths, dtype=np.int64)
    start_E = torch.from_numpy(np.repeat(np.cumsum(sizes_B) - sizes_B, np.array(counts, dtype=np.int64)))
    sizes_E = (last_E - first_E + 1).clamp(max=MOST_PIECES)
    first_E = first_E + to_device(start_E, first_E.device)
    # A GPU is not asked how long the longest mention is: it would be waited for.
    longest = int(sizes_E.max()) if sizes_E.device.type == "cpu" else MOST_PIECES
    column_W = torch.arange(longest, device=first_E.device)
    rows_EW = first_E[:, None] + torch.minimum(column_W, sizes_E[:, None] - 1)
    shares_EW = ((column_W < sizes_E[:, None]).float() / sizes_E[:, None]).to(rows_ND.dtype)
    return F.embedding_bag(rows_EW, rows_ND, mode="sum", per_sample_weights=shares_EW)

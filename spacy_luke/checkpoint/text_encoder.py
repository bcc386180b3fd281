"""Vectors of texts by a checkpoint's encoder, as those of entities' titles and descriptions.

E texts, N packed pieces, D model width.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b

import numpy as np
import torch

from ..batch.batches import batch_items
from ..model.families import build_encoder
from ..model.luke import Windows
from ..text.cases import CasedTokenizer
from .contents import LukeCheckpoint

_SAMPLE = "A text, with Words (10 of them) that tokenizers cut «differently» – naïvely, unbelievably, 東京."


class _Text:
    """A window of an entity's pieces, as `batch_items` takes it."""

    def __init__(self, place: int, pieces: np.ndarray):
        self.place, self.pieces = place, pieces

    @property
    def cost(self) -> int:
        return len(self.pieces)


class TextEncoder:
    """The mean of an encoder's last word states over all pieces of a text, [CLS] and [SEP] among them; of a long text
    over its first window. normalise: to length 1. gpu_id: -1 for the CPU; None: a GPU where torch has one. Raises
    ValueError for a GPU that it has not."""

    def __init__(self, checkpoint: LukeCheckpoint, *, normalise: bool = True, gpu_id: int | None = None):
        if checkpoint.tokenizer is None:
            raise ValueError("The checkpoint has no tokenizer. Expected its files beside the weights.")
        self.tokenizer, self.normalise = checkpoint.tokenizer, normalise
        if checkpoint.config.case_feature:
            self.tokenizer = CasedTokenizer(checkpoint.tokenizer, checkpoint.config.vocab_size)
        self.encoder = build_encoder(replace(checkpoint.config, mention_start=False)).eval()  # words alone are read
        prefix = "encoder."
        self.encoder.load_state_dict(
            {n[len(prefix) :]: x for n, x in checkpoint.tensors.items() if n.startswith(prefix)}
        )
        self.encoder.to(_device_of(gpu_id))

    @property
    def size(self) -> int:
        """Numbers of a vector (D)."""
        return self.encoder.config.hidden_size

    def fingerprint(self) -> str:
        """Tells encoders apart whose vectors do not belong together: by weights, tokenizer and normalisation."""
        state = blake2b(f"{self.normalise} {self.tokenizer.encode(_SAMPLE)[0]}".encode(), digest_size=16)
        for name, tensor in sorted(self.encoder.state_dict().items()):
            state.update(name.encode())
            state.update(tensor.cpu().contiguous().flatten().view(torch.uint8).numpy().data)
        return state.hexdigest()

    @torch.inference_mode()
    def encode(self, texts: Sequence[str], *, batch_size: int = 4096) -> np.ndarray:
        """float32 (E, D). batch_size: pieces encoded at once."""
        device = self.encoder.words.piece.weight.device
        room = self.encoder.config.max_window - 2
        items = []
        for place, text in enumerate(texts):
            ids = np.asarray(self.tokenizer.encode(text)[0][:room], dtype=np.int64)
            items.append(_Text(place, self.tokenizer.window(ids)))
        vectors_ED = np.empty((len(texts), self.size), dtype=np.float32)
        for batch in batch_items(items, size=batch_size, make=lambda some: list(some)):
            lengths = [len(x.pieces) for x in batch]
            pieces_N = torch.from_numpy(np.concatenate([x.pieces for x in batch])).to(device)
            states_ND = self.encoder.word_states(Windows(pieces_N, lengths)).float()
            means = torch.stack([x.mean(0) for x in states_ND.split(lengths)])
            if self.normalise:
                means = torch.nn.functional.normalize(means, dim=-1)
            vectors_ED[[x.place for x in batch]] = means.cpu().numpy()
        return vectors_ED


def _device_of(gpu_id: int | None) -> torch.device:
    if gpu_id is None:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if gpu_id >= torch.cuda.device_count():
        raise ValueError(
            f"Expected one of the {torch.cuda.device_count()} GPUs that torch sees, from 0 on, or -1 for the CPU, but "
            f"the GPU asked for is {gpu_id}."
        )
    return torch.device("cpu") if gpu_id < 0 else torch.device("cuda", gpu_id)

"""The shims of a component's model, and how they are kept: one safetensors file, replaced at once."""

import json
from pathlib import Path
from typing import Dict, Iterable, Optional, Tuple, Union

import srsly
import torch
from safetensors import safe_open
from safetensors.torch import load, save, save_file
from spacy.pipeline.trainable_pipe import TrainablePipe
from thinc.api import Model

from ..bridge.encoders import ENCODER, is_shared
from ..bridge.wrapper import TorchShim, shims_of
from ..checkpoint.files import read_tensors, write_atomically
from ..knowledge.vectors import EntityVectors
from .loading import unpack_vectors

VECTORS = "entity_vectors"  # folder beside the file
FILE = "model.safetensors"
METADATA = "spacy_luke"  # where the file has what is not a tensor, as JSON
BYTES_LIMIT = 2**32 - 1  # what msgpack, and so spaCy's to_bytes, can hold in one field


class StoredComponent(TrainablePipe):
    """A component whose model is made of shims, one of them an encoder's. Settings are in `self.cfg`, and so on disk.

    A shared encoder is stored by the `luke_encoder` component that owns it.
    """

    @property
    def encoder(self) -> TorchShim:
        return shims_of(self.model)[ENCODER]

    @property
    def encoder_node(self) -> Model:
        return next(node for node in self.model.walk() if node.name == ENCODER)

    @property
    def shared(self) -> bool:
        """Whether the encoder is that of a `luke_encoder` component, which stores and steps it."""
        return is_shared(self.encoder_node)

    @property
    def own_shims(self) -> Dict[str, TorchShim]:
        shims = shims_of(self.model)
        return {name: shim for name, shim in shims.items() if not (self.shared and name == ENCODER)}

    @property
    def own_vectors(self) -> Optional[EntityVectors]:
        """Entity vectors of an encoder that is its own."""
        return None if self.shared else self.encoder.vectors

    def take_vectors(self, vectors: EntityVectors) -> None:
        """Those that were stored beside it."""
        self.encoder.vectors = vectors

    @property
    def attention(self) -> str:
        """The model's attention mode, which its weights were trained for; "" of an encoder alone."""
        return self.model.attrs.get("attention", "")

    def _stored(self) -> Tuple[Dict[str, torch.Tensor], Dict[str, str]]:
        tensors, stored = {}, {}
        for node, shim in self.own_shims.items():
            part, values = shim.stored()
            tensors.update({f"{node}/{name}": x for name, x in part.items()})
            stored[node] = values
        # One entry, since safetensors writes several in an order that changes from run to run.
        return tensors, {METADATA: json.dumps({"cfg": self.cfg, "attention": self.attention, "shims": stored})}

    def _restore(self, tensors: Dict[str, torch.Tensor], metadata: Dict[str, str]) -> None:
        read = json.loads(metadata[METADATA])
        self.cfg.update(read["cfg"])
        stored = read["shims"]
        shims = self.own_shims
        if set(stored) != set(shims):
            raise ValueError(
                f"The saved '{self.name}' has the parts {sorted(stored)}, but its config builds {sorted(shims)}. "
                "Load it with the config.cfg that was saved beside it."
            )
        if read["attention"] != self.attention:
            raise ValueError(
                f"The weights of '{self.name}' were trained with attention = {read['attention']!r}, but its config says "
                f"{self.attention!r}. Load it with the config.cfg that was saved beside it, or train again."
            )
        for node, shim in shims.items():
            prefix = f"{node}/"
            shim.restore({n[len(prefix) :]: x for n, x in tensors.items() if n.startswith(prefix)}, stored[node])

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write DIR/model.safetensors: weights, tokenizer and settings. The old file is whole until the new one is."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        tensors, metadata = self._stored()
        with write_atomically(path / FILE) as temporary:
            save_file(tensors, temporary, metadata)
            temporary.chmod(path.stat().st_mode & 0o666)  # save_file lets nobody else read it
        if self.own_vectors is not None:
            self.own_vectors.save(path / VECTORS)

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "StoredComponent":
        """Raises ValueError, naming the file, where it is missing, truncated, or not a pipeline's."""
        path = Path(path) / FILE
        tensors = read_tensors(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        if METADATA not in metadata:
            raise ValueError(
                f"{path} holds tensors, but not those of a saved '{self.name}'. To start from a checkpoint, name it in "
                f"[initialize.components.{self.name}.weights], or convert it with `spacy luke convert`."
            )
        self._restore(tensors, metadata)
        if (folder := path.parent / VECTORS).is_dir():
            self.take_vectors(EntityVectors.open(folder))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """As `to_disk`, in one bytestring of less than 4 GiB; larger pipelines go to disk."""
        tensors, metadata = self._stored()
        files = {} if self.own_vectors is None else {x.name: x for x in self.own_vectors.path.iterdir()}
        size = sum(x.numel() * x.element_size() for x in tensors.values())
        size += sum(file.stat().st_size for file in files.values())
        if size >= BYTES_LIMIT:
            raise ValueError(
                f"'{self.name}' holds {size:,} bytes, and a bytestring in spaCy's format at most {BYTES_LIMIT:,}. "
                "Use nlp.to_disk, which has no limit."
            )
        vectors = {name: file.read_bytes() for name, file in files.items()}
        return srsly.msgpack_dumps({"metadata": metadata, "tensors": save(tensors), VECTORS: vectors})

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "StoredComponent":
        message = srsly.msgpack_loads(bytes_data)
        self._restore(load(message["tensors"]), message["metadata"])
        if vectors := message.get(VECTORS):
            self.take_vectors(unpack_vectors(vectors))
        return self

"""What all components share: weights from checkpoints, one file on disk, updates that accumulate."""

import json
from pathlib import Path
from typing import Any, ContextManager, Dict, Iterable, List, Optional, Tuple, Type, TypeVar, Union

import srsly
import torch
from safetensors import safe_open
from safetensors.torch import load, save, save_file
from spacy.language import Language
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.tokens import Span
from thinc.api import Optimizer

from ..bridge.architectures import number_format
from ..bridge.optimizer import AdamW
from ..bridge.wrapper import TorchShim, shims_of
from ..checkpoint.checkpoint import Checkpoint
from ..checkpoint.files import read_tensors, write_atomically
from ..entities import EntityVocab
from ..model.config import EncoderConfig
from ..text.tokenizer import PieceTokenizer

FILE = "model.safetensors"
METADATA = "spacy_luke"  # where the file has what is not a tensor, as JSON
BYTES_LIMIT = 2**32 - 1  # what msgpack, and so spaCy's to_bytes, can hold in one field


class LukeComponent(TrainablePipe):
    """A trainable component whose model holds a LUKE encoder. Settings are in `self.cfg`, and so on disk."""

    noun = "LUKE component"  # what messages call it
    encoder_node = "luke_encoder"
    _tokenizer: Optional[PieceTokenizer] = None  # read from the encoder's texts when it is needed
    _weight = 0.0  # of the updates since the last step

    @property
    def encoder(self) -> TorchShim:
        return shims_of(self.model)[self.encoder_node]

    @property
    def attention(self) -> str:
        """The model's attention mode, which its weights were trained for."""
        return self.model.attrs["attention"]

    @property
    def tokenizer(self) -> PieceTokenizer:
        if self._tokenizer is None:
            if "tokenizer" not in self.encoder.texts:
                _ = self.encoder.module  # raises: nothing is loaded
            self._tokenizer = PieceTokenizer.from_json(self.encoder.texts["tokenizer"])
        return self._tokenizer

    def load_encoder(self, checkpoint: Checkpoint) -> None:
        """Take over a checkpoint's encoder, tokenizer and entity vocabulary.

        The module gets the special rows of the entity table only. Other rows that the checkpoint brings are kept beside
        it, unread, and go with the pipeline when it is saved or exported.
        """
        if checkpoint.tokenizer is None or checkpoint.entities is None:
            missing = "tokenizer" if checkpoint.tokenizer is None else "entity vocabulary"
            raise ValueError(
                f"The checkpoint has no {missing}. Expected its files beside the weights (tokenizer.json, or "
                "vocab.json and merges.txt, or vocab.txt, or sentencepiece.bpe.model; and entity_vocab.json)."
            )
        config, tensors = checkpoint.config, dict(checkpoint.tensors)
        special = checkpoint.entities.special_rows()
        rows = sorted(set(special.values()))
        table = tensors["encoder.entities.table.weight"]
        kept = {"pooler." + k: tensors[f"pooler.{k}"] for k in ("weight", "bias") if f"pooler.{k}" in tensors}
        if len(rows) < len(table):
            kept["entities.table.weight"] = table
            tensors["encoder.entities.table.weight"] = table[rows].clone()
        small = EncoderConfig.from_dict({**config.to_dict(), "entity_vocab_size": len(rows)})
        shim = self.encoder
        shim.create(
            {
                "config": small.to_dict(),
                "special_rows": rows,
                "mask_row": rows.index(checkpoint.entities.mask_row),
                "source": checkpoint.source,
            }
        )
        prefix = "encoder."
        shim.fill({name[len(prefix) :]: x for name, x in tensors.items() if name.startswith(prefix)})
        shim.kept = kept
        shim.texts = {"tokenizer": checkpoint.tokenizer.to_json(), "entities": checkpoint.entities.to_json()}
        self._tokenizer = None

    def to_checkpoint(self) -> Checkpoint:
        """The reverse of `load_encoder`, for export: the encoder with the whole entity table that is there."""
        shim = self.encoder
        tensors = {f"encoder.{name}": x.detach().cpu() for name, x in shim.module.state_dict().items()}
        kept = dict(shim.kept)
        config = dict(shim.settings["config"])
        if "entities.table.weight" in kept:
            table = kept.pop("entities.table.weight").clone()
            table[shim.settings["special_rows"]] = tensors["encoder.entities.table.weight"]
            tensors["encoder.entities.table.weight"] = table
            config["entity_vocab_size"] = len(table)
        return Checkpoint(
            config=EncoderConfig.from_dict(config),
            tensors={**tensors, **kept},
            tokenizer=self.tokenizer,
            entities=EntityVocab.from_json(shim.texts["entities"]),
            labels=None,
            task="encoder",
            source=shim.settings["source"],
            report=[],
        )

    def model_of(self, name: str) -> Any:
        return next(node for node in self.model.walk() if node.name == name)

    def predicting(self) -> ContextManager[None]:
        """Around the passes of one prediction; an encoder without weights raises here already."""
        _ = self.encoder.module
        return number_format(self.model_of(self.encoder_node), self.encoder, is_train=False)

    def named_parameters(self) -> List[Tuple[str, torch.nn.Parameter]]:
        """Trainable parameters with their names in a checkpoint: encoder.*, head.*"""
        prefixes = {self.encoder_node: "encoder"}
        shims = shims_of(self.model).items()
        return [(f"{prefixes.get(node, node)}.{n}", p) for node, shim in shims for n, p in shim.named_parameters()]

    def accumulate(self, weight: float) -> None:
        """Note by how much the summed loss of an update must be divided when the step is made."""
        self._weight += weight

    def finish_update(self, sgd: Optimizer) -> None:
        """One step with the mean gradient of all updates since the last one, however they were divided."""
        parameters = self.named_parameters()
        if self._weight:
            torch._foreach_div_([p.grad for _, p in parameters if p.grad is not None], float(self._weight))
        self._weight = 0.0
        if isinstance(sgd, AdamW):
            sgd.step(self.name, parameters)
        else:
            self.model.finish_update(sgd)

    # ---- saving and loading: one safetensors file, replaced at once

    def _stored(self) -> Tuple[Dict[str, torch.Tensor], Dict[str, str]]:
        tensors, stored = {}, {}
        for node, shim in shims_of(self.model).items():
            part, values = shim.stored()
            tensors.update({f"{node}/{name}": x for name, x in part.items()})
            stored[node] = values
        # One entry, since safetensors writes several in an order that changes from run to run.
        return tensors, {METADATA: json.dumps({"cfg": self.cfg, "attention": self.attention, "shims": stored})}

    def _restore(self, tensors: Dict[str, torch.Tensor], metadata: Dict[str, str]) -> None:
        read = json.loads(metadata[METADATA])
        self.cfg.update(read["cfg"])
        stored = read["shims"]
        shims = shims_of(self.model)
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
        self._tokenizer = None

    def to_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> None:
        """Write DIR/model.safetensors: weights, tokenizer and settings. The old file is whole until the new one is."""
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        tensors, metadata = self._stored()
        with write_atomically(path / FILE) as temporary:
            save_file(tensors, temporary, metadata)
            temporary.chmod(path.stat().st_mode & 0o666)  # save_file lets nobody else read it

    def from_disk(self, path: Union[str, Path], *, exclude: Iterable[str] = ()) -> "LukeComponent":
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
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """As `to_disk`, in one bytestring of less than 4 GiB; larger pipelines go to disk."""
        tensors, metadata = self._stored()
        size = sum(x.numel() * x.element_size() for x in tensors.values())
        if size >= BYTES_LIMIT:
            raise ValueError(
                f"'{self.name}' holds {size:,} bytes, and a bytestring in spaCy's format at most {BYTES_LIMIT:,}. "
                "Use nlp.to_disk, which has no limit."
            )
        return srsly.msgpack_dumps({"metadata": metadata, "tensors": save(tensors)})

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "LukeComponent":
        message = srsly.msgpack_loads(bytes_data)
        self._restore(load(message["tensors"]), message["metadata"])
        return self


def register_span_extension(name: str) -> None:
    if not Span.has_extension(name):
        Span.set_extension(name, default=None)


Found = TypeVar("Found", bound=LukeComponent)


def find_component(nlp: Language, kind: Type[Found], name: Optional[str] = None) -> Found:
    """The pipeline's component of this kind and name, or its only one. Raises ValueError where there is no such thing."""
    found = {key: proc for key, proc in nlp.pipeline if isinstance(proc, kind)}
    if name is None and len(found) != 1:
        raise ValueError(
            f"The pipeline has the {kind.noun}s {list(found)}. Expected one {kind.noun}, or --component to name it."
        )
    if name is not None and name not in found:
        raise ValueError(f"The pipeline has no {kind.noun} {name!r}; it has {list(found)}.")
    return found[name] if name is not None else next(iter(found.values()))

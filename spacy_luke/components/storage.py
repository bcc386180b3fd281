"""The shims of a component's model, and how they are kept: one safetensors file, replaced at once."""

import copy
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import srsly
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load, save, save_file
from spacy.language import Language
from spacy.pipeline.trainable_pipe import TrainablePipe
from spacy.vocab import Vocab
from thinc.api import Model
from torch import nn

from ..bridge.digests import digest_tensors, digest_values, note_digest, shim_digest
from ..bridge.wrapper import TorchShim, no_weights, shims_of
from ..checkpoint.files import check_finite, read_tensors
from ..encoders.kind import EncoderShim
from ..encoders.nodes import ENCODER, EncoderModel, encoder_of, is_shared
from ..stores.atomic import write_atomically
from ..stores.digests import digest_bytes
from ..stores.folder import MANIFEST, StoreFolder
from ..vectors.store import EntityVectors
from .encoder_checks import check_encoder, check_owner, saved_components
from .factories import Configured, Values, settings_of
from .settings import changed_settings, check_fixed, pack_about, take_settings, unpack_about

Opened = TypeVar("Opened", bound=StoreFolder)

_VECTORS = "entity_vectors"  # folder beside the file
_FILE = "model.safetensors"
METADATA = "spacy_luke"  # where the file has what is not a tensor, as JSON
BYTES_LIMIT = 2**32 - 1  # what msgpack, and so spaCy's to_bytes, can hold in one field
_FIXED = (
    "attention",
    "features",
    "bias",
    "proposer_size",
    "prior",
    "match",
    "nil",
    "context",
)  # of a model's settings, where it has them


class StoredComponent(Configured, TrainablePipe):  # type: ignore[misc]  # spaCy's has no types
    """A component whose model is made of shims, one of them an encoder's. Settings are in `self.cfg`, and are those of
    the pipeline's config: the file has what training has fixed, and what was changed on the component itself.

    A shared encoder is stored by the `luke_encoder` component that owns it. In `exclude`, as of spaCy's components,
    "model" leaves out the weights, "cfg" what is of `self.cfg`, "entity_vectors" the vectors.
    """

    learned: tuple[str, ...] = ()  # what `self.cfg` has that is no setting, but learned
    _saved_stores: dict[str, str] | None = None  # digests of the stores beside the file that was read

    def __init__(self, vocab: Vocab, model: Model[Any, Any], name: str, **settings: Any):
        super().__init__(vocab, model, name)
        for shim in self.own_shims.values():
            shim.absent = no_weights(name)
        declared = settings_of(type(self))
        self.cfg = Values(type(self), {key: x for key, x in settings.items() if key not in declared})
        self.cfg.belongs_to(self)
        self.configure({key: x for key, x in settings.items() if key in declared})
        self.configured = {key: copy.deepcopy(x) for key, x in self.cfg.items() if key not in self.learned}

    def __setstate__(self, state: Any) -> None:
        """After a pickle or a copy, whose `cfg` does not say whose it is."""
        super().__setstate__(state)
        self.cfg.belongs_to(self)

    @property
    def encoder_node(self) -> EncoderModel:
        node: EncoderModel = self.model if self.model.name == ENCODER else self.model.layers[0]  # a head stands on it
        return node

    @property
    def encoder(self) -> EncoderShim[Any]:
        return encoder_of(self.encoder_node)

    @property
    def shared(self) -> bool:
        """Whether the encoder is that of a `luke_encoder` component, which stores and steps it."""
        return is_shared(self.encoder_node)

    @property
    def own_shims(self) -> dict[str, TorchShim[nn.Module]]:
        shims = shims_of(self.model)
        return {name: shim for name, shim in shims.items() if not (self.shared and name == ENCODER)}

    @property
    def own_vectors(self) -> EntityVectors | None:
        """Entity vectors of an encoder that is its own."""
        return None if self.shared else self.encoder.vectors

    @property
    def stores(self) -> dict[str, StoreFolder]:
        """The stores that are saved beside the file, by the names of their folders there."""
        return {} if self.own_vectors is None else {_VECTORS: self.own_vectors}

    def take_vectors(self, vectors: EntityVectors) -> None:
        """Those that were stored beside it."""
        self.encoder.vectors = vectors

    @property
    def attention(self) -> str:
        """The model's attention mode, which its weights were trained for; "" of an encoder alone."""
        attention: str = self.model.attrs.get("attention", "")
        return attention

    @property
    def fixed(self) -> dict[str, Any]:
        """Settings that the weights were trained for, JSON values; a config that says something else is refused."""
        attrs = self.model.attrs
        fixed = {"attention": self.attention, **{name: attrs[name] for name in _FIXED if name in attrs}}
        return fixed if self.shared else {**fixed, "encoder": self.encoder.kind.name}

    def settle(self, nlp: Language | None, **values: Any) -> None:
        """Take values of settings that training or `tune` has found, into the config of `nlp` too. Without it the
        component's file keeps them, and they count where the config says what it said when the component was made."""
        self.cfg.update(values)
        if nlp is not None:
            nlp.get_pipe_config(self.name).update(values)
            self.configured.update(values)

    # ---- what is stored

    def _stored(self, exclude: Iterable[str]) -> tuple[dict[str, torch.Tensor], dict[str, str]]:
        tensors: dict[str, torch.Tensor] = {}
        about: dict[str, Any] = {"fixed": self.fixed}
        about["stores"] = {name: store_digest(store) for name, store in self.stores.items()}
        if "cfg" not in exclude:
            about["learned"] = {key: self.cfg[key] for key in self.learned if key in self.cfg}
            for key, value in about["learned"].items():  # a list may have been changed in its place
                self.check_learned(key, value)
            about["changed"] = changed_settings(self.configured, self.cfg)
        if "model" not in exclude:
            check_owner(self.encoder_node, name=self.name)
            check_encoder(self.encoder_node, name=self.name)
            about["shims"] = {}
            for node, shim in self.own_shims.items():
                part, values = shim.stored()
                self._check_finite(part, "saved")
                tensors.update({f"{node}/{name}": x for name, x in part.items()})
                if values:
                    values = {**values, "digest": digest_tensors(part, values)}
                    note_digest(shim, values["digest"])
                about["shims"][node] = values
            if self.shared and self.encoder.ready:
                about["encoder"] = self.encoder_node.attrs["digest"] = shim_digest(self.encoder)
        # One entry, since safetensors writes several in an order that changes from run to run.
        return tensors, {METADATA: pack_about(about)}

    def _restore(
        self, tensors: dict[str, torch.Tensor], metadata: dict[str, str], exclude: Iterable[str], *, source: str
    ) -> None:
        """source: what messages call the file. Raises ValueError, before anything is changed, where it is damaged or
        does not fit."""
        about = unpack_about(metadata[METADATA], exclude, source=source)
        self._saved_stores = about.get("stores")
        if "model" not in exclude:
            stored = about["shims"]
            parts = self._parts(tensors, stored, source=source)
            if any(stored.values()):
                check_fixed(about["fixed"], self.fixed, name=self.name)
        if "cfg" not in exclude:
            take_settings(about, self.configured, self.cfg, default=type(self))
        if "model" not in exclude:
            for node, shim in self.own_shims.items():
                shim.restore(parts[node], stored[node])
                if "digest" in stored[node]:
                    note_digest(shim, stored[node]["digest"], loaded=True)
            self._meet_encoder(about.get("encoder"))

    def _parts(
        self, tensors: dict[str, torch.Tensor], stored: dict[str, Any], *, source: str
    ) -> dict[str, dict[str, torch.Tensor]]:
        """The tensors of each shim. Raises ValueError where they are not those that were saved."""
        shims = self.own_shims
        if set(stored) != set(shims):
            raise ValueError(
                f"The saved '{self.name}' has the parts {sorted(stored)}, but its config builds {sorted(shims)}. "
                "Load it with the config.cfg that was saved beside it."
            )
        parts = {}
        for node in shims:
            prefix = f"{node}/"
            part = parts[node] = {n[len(prefix) :]: x for n, x in tensors.items() if n.startswith(prefix)}
            values = dict(stored[node])
            expected = values.pop("digest", None)  # files of earlier versions have none
            if expected is not None and digest_tensors(part, values) != expected:
                raise ValueError(
                    f"{source} is damaged: the weights of its part {node!r} are not those that were saved (their "
                    "digest differs). Copy or download it again."
                )
            self._check_finite(part, "loaded")
        return parts

    def _check_finite(self, tensors: dict[str, torch.Tensor], verb: str) -> None:
        for name, x in tensors.items():
            if x.is_floating_point():
                try:
                    check_finite(name, x)
                except ValueError as error:
                    raise ValueError(f"'{self.name}' cannot be {verb}. {error}") from error

    def _meet_encoder(self, digest: str | None) -> None:
        """Where the encoder is shared, remember which one this component was saved with. Raises ValueError where the
        pipeline has another one."""
        if self.shared and digest is not None:
            self.encoder_node.attrs["digest"] = digest
            check_encoder(self.encoder_node, name=self.name)

    def _open_beside(
        self, path: str | Path, name: str, exclude: Iterable[str], open_store: Callable[[Path], Opened]
    ) -> Opened | None:
        """The store that was saved with the component in `path`; None where there is none, or only one of a component
        that was saved there before. Raises ValueError for one that was not saved with it."""
        folder = Path(path) / name
        saved = self._saved_stores  # None of earlier files
        if name in exclude or not folder.is_dir() or (saved is not None and name not in saved):
            return None
        store = open_store(folder)
        if saved is not None and store_digest(store) != saved[name]:
            raise ValueError(
                f"{folder} is not the store that '{self.name}' was saved with (its manifest differs). A pipeline that "
                "was saved over another one and killed meanwhile is such a mixture: save or copy the whole pipeline "
                "again."
            )
        return store

    # ---- to files and bytes

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write DIR/model.safetensors, with weights, tokenizer and what was learned, and the stores beside it. All of
        it is whole before any of it takes the place of what was there: an error leaves the component that was saved
        there before, or none. Raises ValueError for weights that are not finite, where a shared encoder is in no
        pipeline, and where the folder of a store is there no more, also of a component that is saved next."""
        path = Path(path)
        for proc in saved_components():
            for store in proc.stores.values() if isinstance(proc, StoredComponent) else ():
                store.paths()
        tensors, metadata = self._stored(exclude)
        path.mkdir(parents=True, exist_ok=True)
        with ExitStack() as new:
            temporary = new.enter_context(write_atomically(path / _FILE))
            save_file(tensors, temporary, metadata)
            temporary.chmod(path.stat().st_mode & 0o666)  # save_file lets nobody else read it
            for name, store in self.stores.items():
                if name not in exclude:
                    new.enter_context(store.saving(path / name))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> "StoredComponent":
        """Raises ValueError, naming the file, where it is missing, truncated, damaged, or not a pipeline's, and where
        the component was saved with another encoder than the pipeline's."""
        path = Path(path) / _FILE
        tensors = read_tensors(path)
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        if METADATA not in metadata:
            raise ValueError(
                f"{path} holds tensors, but not those of a saved '{self.name}'. To start from a checkpoint, name it in "
                f"[initialize.components.{self.name}.weights], or convert it with `spacy luke convert`."
            )
        self._restore(tensors, metadata, exclude, source=str(path))
        if (vectors := self._open_beside(path.parent, _VECTORS, exclude, EntityVectors.open)) is not None:
            self.take_vectors(vectors)
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """As `to_disk`, in one bytestring of less than 4 GiB; larger pipelines go to disk."""
        tensors, metadata = self._stored(exclude)
        store = None if _VECTORS in exclude else self.own_vectors
        files = {} if store is None else store.paths()
        size = sum(x.numel() * x.element_size() for x in tensors.values())
        size += sum(file.stat().st_size for file in files.values())
        if size >= BYTES_LIMIT:
            raise ValueError(
                f"'{self.name}' holds {size:,} bytes, and a bytestring in spaCy's format at most {BYTES_LIMIT:,}. "
                "Use nlp.to_disk, which has no limit."
            )
        vectors = {} if store is None else store.pack()
        packed: bytes = srsly.msgpack_dumps({"metadata": metadata, "tensors": save(tensors), _VECTORS: vectors})
        return packed

    def from_bytes(self, bytes_data: bytes, *, exclude: Iterable[str] = ()) -> "StoredComponent":
        message = srsly.msgpack_loads(bytes_data)
        source = f"The bytestring of '{self.name}'"
        try:
            tensors = load(message["tensors"])
        except SafetensorError as error:
            raise ValueError(f"{source} is damaged: {error}. Copy it again.") from error
        self._restore(tensors, message["metadata"], exclude, source=source)
        if (vectors := message.get(_VECTORS)) and _VECTORS not in exclude:
            self.take_vectors(EntityVectors.unpack(vectors))
        return self


def store_digest(store: StoreFolder) -> str:
    """Of the manifests of a store, which have the digests of its files. ValueError where its folder is there no
    more."""
    manifests = {name: path for name, path in sorted(store.paths().items()) if path.name == MANIFEST}
    return digest_values({name: digest_bytes(path.read_bytes()) for name, path in manifests.items()})

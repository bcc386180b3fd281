"""Where checkpoints come from: files, installed Python packages, the Hugging Face hub. For spaCy's configs."""

import importlib.util
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from spacy.util import registry

from ..vectors.store import EntityVectors
from .checkpoint import read_checkpoint
from .contents import ErnieCheckpoint, LukeCheckpoint
from .ernie import read_ernie

PACKAGE = "package:"
_ERNIE_SIZE = 100  # numbers of an entity vector in the paper
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w./-]+)?")
_BARE_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(@[\w./-]+)?")  # such as bert-base-uncased, which has no owner
_ARCHIVES = (".gz", ".tar", ".tgz", ".zip")
_CONFIGS = ("config.json", "ernie_config.json", "metadata.json")
HUB_FILES = [
    *_CONFIGS,
    "entity_vocab.*",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "sentencepiece.bpe.model",
    "spm.model",
]
_HUB_WEIGHTS = (
    ["model*.safetensors", "model.safetensors.index.json"],
    ["pytorch_model*.bin", "pytorch_model.bin.index.json"],
)


@registry.misc("spacy-luke.checkpoint.v1")
def make_checkpoint_loader(
    path: str,
    entities: str = "special",
    tokenizer: str | None = None,
    base: str | None = None,
    labels: list[str] | None = None,
    entity_aware: bool | None = None,
    entity_size: int = 256,
    entity_start: str = "fresh",
    seed: int = 0,
    layers: int | None = None,
    case_feature: bool = False,
) -> Callable[[], LukeCheckpoint]:
    """A function that reads a checkpoint; nothing is read, or asked of the hub, before it is called.

    path: a folder, an archive, a name on the hub (`NAME@REVISION`), or `package:NAME/FOLDER`, a folder in a package.
    entities: rows of the entity table: "special", only those that most tasks need, or "all".
    tokenizer: another place for the tokenizer's files, and for the entity vocabulary, where they are not beside the
    weights.
    base: what a fine-tuning began with, for checkpoints of weights alone.
    labels: of the checkpoint's classifier, in order, where it does not name them.
    entity_aware: entity-aware attention (four query matrices); null: as the checkpoint says.
    entity_size: width of a fresh entity table.
    entity_start: where the checkpoint is no LUKE: "fresh" parameters of entities, or copies of the "words" parameters,
    better for small data. Of any checkpoint, "mention": [MASK] entities begin with the mean of their mention's pieces.
    seed: of fresh parameters.
    layers: so many layers of the encoder are kept, the first ones: smaller and faster, to be trained further; null:
    all.
    case_feature: words get a learned vector for their case (lower, Title, UPPER, miXed, digits), which an encoder of
    small letters does not see; zeros to begin with.
    """

    def load_checkpoint() -> LukeCheckpoint:
        return read_checkpoint(
            find_source(path),
            entities=entities,
            tokenizer=None if tokenizer is None else find_source(tokenizer, weights=False),
            base=None if base is None else find_source(base, weights=False),
            labels=labels,
            entity_aware=entity_aware,
            entity_size=entity_size,
            entity_start=entity_start,
            seed=seed,
            layers=layers,
            case_feature=case_feature,
        )

    return load_checkpoint


@registry.misc("spacy-luke.ernie_checkpoint.v1")
def make_ernie_loader(
    path: str,
    vectors: str | None = None,
    layer_kinds: list[str] | None = None,
    entity_size: int | None = None,
    entity_heads: int = 4,
    labels: list[str] | None = None,
    seed: int = 0,
    layers: int | None = None,
    pooler: str = "checkpoint",
) -> Callable[[], ErnieCheckpoint]:
    """A function that reads an ERNIE checkpoint, or a BERT to begin one from; nothing is read, or asked of the hub,
    before it is called.

    path: an ERNIE in the original's layout (`ernie_config.json`, `vocab.txt`, `pytorch_model.bin`), or a BERT.
    vectors: folder of the entity vectors, which `spacy luke build-vectors` makes; null: none, for components that read
    no entities.
    layer_kinds: of a BERT: "sim", "mix" or "norm" for each layer; null: as the released one, in proportion.
    entity_size: of a BERT; null: the vectors' width, or 100.
    entity_heads: of a BERT: attention heads of entities.
    labels: of the checkpoint's classifier, in order.
    seed: of fresh parameters.
    layers: so many layers are kept, the first ones; null: all.
    pooler: "checkpoint", or "fresh" parameters, for an encoder whose pooled state says little.
    """

    def load_checkpoint() -> ErnieCheckpoint:
        folder = None if vectors is None else find_source(vectors, weights=False)
        size = entity_size
        if size is None:
            size = _ERNIE_SIZE if folder is None else EntityVectors.open(folder).size
        checkpoint = read_ernie(
            find_source(path),
            layer_kinds=layer_kinds,
            entity_size=size,
            entity_heads=entity_heads,
            labels=labels,
            seed=seed,
            layers=layers,
            pooler=pooler,
        )
        checkpoint.vectors = folder
        return checkpoint

    return load_checkpoint


def find_source(path: str | Path, *, weights: bool = True) -> Path:
    """A local folder or archive for `path`, which is one itself; or "package:NAME/FOLDER", a folder inside an installed
    Python package; or an id of the Hugging Face hub, such as "studio-ousia/luke-base", with "@REVISION" if wanted.

    weights: whether a hub's are downloaded too; for the config, tokenizer and entities alone they need not be.
    Raises ValueError where there is no such thing, ImportError where the hub is asked for and huggingface_hub is
    missing.
    """
    if isinstance(path, Path):
        path = str(path)
    if is_on_hub(path):
        return _from_hub(path, _HUB_WEIGHTS if weights else ())
    if path.startswith(PACKAGE):
        return _in_package(path.removeprefix(PACKAGE))
    if Path(path).exists():
        return Path(path)
    raise ValueError(
        f"Expected a folder, an archive, {PACKAGE}NAME/FOLDER or a hub id such as studio-ousia/luke-base, but there "
        f"is no file {path!r} (looked for from {Path.cwd()}).{_meant(path)}"
    )


def is_on_hub(path: str) -> bool:
    """Whether `find_source` would ask the hub for it, which is not asked here."""
    local = path.startswith(PACKAGE) or path.endswith(_ARCHIVES) or Path(path).exists()
    return not local and _HUB_ID.fullmatch(path) is not None


def model_in_package(name: str) -> str | None:
    """What `find_source` finds a checkpoint by that lies in an installed Python package of this name, or at most one
    folder down: "package:NAME/FOLDER"; None where there is no such package, or none in it."""
    name = name.replace("-", "_")
    for location in _package_folders(name):
        for config in _CONFIGS:
            if Path(location, config).exists():
                return f"{PACKAGE}{name}"
            if found := sorted(Path(location).glob(f"*/{config}")):
                return f"{PACKAGE}{name}/{found[0].parent.name}"
    return None


def _meant(path: str) -> str:
    """What else may be meant by a name that is not found; "" for what is no bare name."""
    if _BARE_NAME.fullmatch(path) is None or path.endswith(_ARCHIVES):
        return ""
    if packaged := model_in_package(path):
        return f" An installed package of this name has a model: write {packaged}."
    return " A name on the hub has its owner before it, as google-bert/bert-base-uncased or FacebookAI/roberta-base."


def _package_folders(name: str) -> list[str]:
    """Those that an installed Python package lies in, which is not imported for that."""
    try:
        spec = importlib.util.find_spec(name) if name.isidentifier() else None
    except ValueError:  # a module that was made by hand
        return []
    return [] if spec is None else list(spec.submodule_search_locations or [])


def _in_package(path: str) -> Path:
    name, _, folder = path.partition("/")
    if not (locations := _package_folders(name)):
        raise ValueError(
            f"Expected an installed Python package {name!r} (from {PACKAGE}{path}), but there is none. Install it: pip "
            f"install --no-deps {name.replace('_', '-')}"
        )
    for location in locations:
        if (place := Path(location, folder)).exists():
            return place
    raise ValueError(f"The Python package {name!r} has no {folder!r}; it lies in {locations}.")


def _from_hub(path: str, choices: Sequence[list[str]]) -> Path:
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError(
            f"There is no local {path!r}, and to download it from the Hugging Face hub the package huggingface_hub is "
            "needed: pip install 'spacy-luke[hub]'. Or give the path of a folder."
        ) from error
    name, _, revision = path.partition("@")
    try:
        for weights in choices or [[]]:
            files = [*HUB_FILES, *weights]
            folder = Path(snapshot_download(name, revision=revision or None, allow_patterns=files))
            if weights and any(folder.glob(weights[0])):
                break
    except Exception as error:  # the package has no common class for its errors and those of the network
        raise ValueError(
            f"There is no local {path!r}, and it could not be downloaded from the Hugging Face hub: "
            f"{type(error).__name__}: {error} Check the name and the connection; offline, download it elsewhere "
            f"(`hf download {name} --local-dir FOLDER`) and give the path of the folder. A trained pipeline needs "
            "none: to train it further, call nlp.resume_training() and not nlp.initialize()."
        ) from error
    return folder

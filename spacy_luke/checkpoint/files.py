"""Reading files that others wrote, as if they were hostile, and writing weights so that a crash leaves the old ones
whole.

Weights are memory-mapped: `read_tensors` costs nothing, and only the rows that are used later are read from the disk.
"""

import lzma
import pickle
import shutil
import tarfile
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from ..stores.atomic import HeldFolder, usual_mode, write_atomically
from ..stores.atomic import write_folder_atomically as write_folder_atomically
from ..stores.plain_text import read_object

MOST_MEMBERS = 10_000  # files of an archive; checkpoints have a dozen, some hundred where weights come in parts
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)


def find_weights(folder: Path) -> Path:
    """The file of weights in a checkpoint's folder. Raises ValueError where there is none."""
    for name in WEIGHT_FILES:
        if (folder / name).is_file():
            return folder / name
    there = sorted(path.name for path in folder.iterdir())
    raise ValueError(
        f"No weights in {folder}: expected one of {list(WEIGHT_FILES)}, but the folder holds {there}. "
        "TensorFlow and Flax weights must be converted to PyTorch first."
    )


def read_model_config(path: Path) -> dict[str, Any]:
    """`read_object` of a file that was downloaded: what often went wrong there is said too."""
    try:
        return read_object(path)
    except ValueError as error:
        raise ValueError(f"{error}{_hint(path)}") from error


def read_declared(folder: Path) -> dict[str, int]:
    """What sentence-transformers says beside a model of how long its texts may be, {"max_seq_length": n} in pieces with
    [CLS] and [SEP]; {} where it says nothing. Raises ValueError where that is no number of pieces."""
    path = folder / "sentence_bert_config.json"
    declared = read_model_config(path).get("max_seq_length") if path.is_file() else None
    if declared is None:
        return {}
    if type(declared) is not int or declared < 5:
        raise ValueError(f"{path} must hold a number of pieces from 5 as 'max_seq_length', but it is {declared!r}.")
    return {"max_seq_length": declared}


def read_tensors(path: Path) -> dict[str, Tensor]:
    """All tensors of a .safetensors or PyTorch file, or of the shards that an index json lists, memory-mapped.

    Nothing but tensors is ever unpickled. Raises ValueError where the file is truncated or holds anything else.
    The tensors stay valid only while the file does: clone what must outlive it.
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"Expected a file of weights at {path}, but there is none.")
    if path.name.endswith(".index.json"):
        return _read_shards(path)
    if path.suffix == ".safetensors":
        return _read_safetensors(path)
    return _read_pickle(path)


def _read_safetensors(path: Path) -> dict[str, Tensor]:
    try:
        with safe_open(path, framework="pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}
    except (SafetensorError, OSError) as error:
        raise ValueError(
            f"{path} is not a whole safetensors file ({error}); it has {path.stat().st_size:,} bytes. "
            f"It may be truncated: copy or download it again.{_hint(path)}"
        ) from error


def _read_pickle(path: Path) -> dict[str, Tensor]:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Detected pickle protocol")  # said before it is refused
            # Files from before PyTorch 1.6 are not zip archives and cannot be memory-mapped.
            data = torch.load(path, map_location="cpu", weights_only=True, mmap=zipfile.is_zipfile(path))
    except pickle.UnpicklingError as error:
        raise ValueError(
            f"{path} is refused: it is truncated, or it is a pickle that holds more than weights, which could run "
            f"any code. Expected a state dict saved with torch.save.{_hint(path)} PyTorch says: {_first_line(error)}"
        ) from error
    except Exception as error:  # a damaged file makes PyTorch raise nearly anything, AssertionError too
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the file's
        raise ValueError(
            f"{path} is not a whole PyTorch file; it has {path.stat().st_size:,} bytes. It may be truncated: copy or "
            f"download it again.{_hint(path)} PyTorch says: {_first_line(error)}"
        ) from error
    if isinstance(data, dict) and set(data) == {"module"}:  # what DeepSpeed wraps around a state dict
        data = data["module"]
    if not isinstance(data, dict):
        raise ValueError(f"{path} must hold a dict of tensors, but it holds a {type(data).__name__}.")
    for name, value in data.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise ValueError(
                f"{path} must hold a dict of tensors, but its entry {name!r} is a {type(value).__name__}. A training "
                "state must be reduced to the model's state dict first."
            )
    return {name: value.detach() for name, value in data.items()}


def _read_shards(index: Path) -> dict[str, Tensor]:
    names = read_model_config(index).get("weight_map")
    if not isinstance(names, dict) or not names:
        raise ValueError(f"{index} must map tensor names to files under 'weight_map', but it has no such entry.")
    tensors: dict[str, Tensor] = {}
    for file in sorted(set(map(str, names.values()))):
        if file not in names.values() or Path(file).name != file or file.endswith(".index.json"):
            raise ValueError(f"{index} must name files beside it, but it names {file!r}.")
        wanted = {name for name, place in names.items() if place == file}
        shard = read_tensors(index.parent / file)
        if missing := sorted(wanted - set(shard)):
            raise ValueError(f"{index} says that {file} holds {missing}, but it does not. Download both again.")
        tensors.update((name, tensor) for name, tensor in shard.items() if name in wanted)
    return tensors


def check_finite(name: str, tensor: Tensor) -> None:
    """Raises ValueError where a floating-point tensor has a NaN or infinite value."""
    if not tensor.is_floating_point():
        raise ValueError(f"Tensor {name!r} must hold floating-point numbers, but its type is {tensor.dtype}.")
    if tensor.numel() == 0:
        return
    low, high = torch.aminmax(tensor)  # NaN comes through; no temporary of the tensor's size
    if not (torch.isfinite(low) and torch.isfinite(high)):
        rows = tensor.reshape(len(tensor) if tensor.dim() else 1, -1)
        bad = [int((~torch.isfinite(row)).sum()) for row in rows]
        count, first = sum(bad), next(i for i, n in enumerate(bad) if n)
        raise ValueError(
            f"Tensor {name!r} must be finite, but {count:,} of its {tensor.numel():,} values are NaN or infinite, the "
            f"first in row {first}. The checkpoint is damaged or its training diverged."
        )


@contextmanager
def open_archive(path: Path) -> Iterator[Path]:
    """Unpack a tar archive into a temporary folder, which lives as long as the context.

    Raises ValueError as `members_of` does, before anything is written.
    """
    with closing(HeldFolder.temporary()) as held:
        folder = held.path
        folder.mkdir()
        members = members_of(path, room=shutil.disk_usage(folder).free)
        with _whole_archive(path), tarfile.open(path) as archive:
            archive.extractall(folder, members, filter="data")
        yield _single_folder(folder)


def members_of(path: Path, *, room: int | None = None) -> list[tarfile.TarInfo]:
    """The members of a tar archive. room: bytes that they may take.

    Raises ValueError for members that are neither plain files nor folders, whose path leaves the archive, or that are
    too many or too large, and for a damaged archive.
    """
    members: list[tarfile.TarInfo] = []
    size = 0
    with _whole_archive(path), tarfile.open(path) as archive:
        for member in archive:  # each is checked before what it holds is read
            _check_member(path, member)
            members.append(member)
            size += member.size
            if len(members) > MOST_MEMBERS:
                raise ValueError(f"{path} is refused: it holds more than {MOST_MEMBERS:,} files.")
            if room is not None and size > room:
                raise ValueError(
                    f"{path} is refused: it unpacks to {size:,} bytes or more, but {tempfile.gettempdir()} has room "
                    f"for {room:,}. If it should be so large, set TMPDIR to a folder on a larger disk, or unpack it "
                    "yourself."
                )
    return members


@contextmanager
def _whole_archive(path: Path) -> Iterator[None]:
    try:
        yield
    except (tarfile.TarError, EOFError, OSError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's fault, not the archive's
        raise ValueError(f"{path} is not a whole tar archive: {error}.{_hint(path)}") from error


def _check_member(path: Path, member: tarfile.TarInfo) -> None:
    if not (member.isfile() or member.isdir()):
        kind = "a link" if member.issym() or member.islnk() else "a device or another special file"
        raise ValueError(f"{path} is refused: its member {member.name!r} is {kind}; expected plain files only.")
    parts = member.name.replace("\\", "/").split("/")
    if member.name.startswith(("/", "\\")) or ".." in parts or ":" in parts[0]:
        raise ValueError(f"{path} is refused: its member {member.name!r} would be written outside of the folder.")


def _single_folder(folder: Path) -> Path:
    """Archives may hold one folder that holds the files."""
    inside = list(folder.iterdir())
    return inside[0] if len(inside) == 1 and inside[0].is_dir() else folder


def save_tensors(tensors: dict[str, Tensor], path: Path) -> None:
    """Write a .safetensors file that transformers reads, atomically."""
    with write_atomically(path) as temporary:
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, temporary, metadata={"format": "pt"})
        # save_file makes a file of its own with its own mode
        temporary.chmod(usual_mode(0o666))


def _hint(path: Path) -> str:
    with path.open("rb") as file:
        start = file.read(40)
    if start.startswith(b"version https://git-lfs"):
        return " It is a Git LFS pointer, not the file itself: run `git lfs pull`."
    if start.lstrip().lower().startswith((b"<!doctype", b"<html")):
        return " It is a web page, not the file itself: download it again."
    return ""


def _first_line(error: BaseException) -> str:
    lines: list[str] = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:200]

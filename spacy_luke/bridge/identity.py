"""Whether a run that is gone on with is the same: its settings and the digests of its data, compared one by one."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

_CHUNK = 1 << 22


class Change(NamedTuple):
    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name}: was {_shown(self.old)}, now {_shown(self.new)}"


class Identity(NamedTuple):
    """Settings by their dotted names, as JSON has them. fixed: those that change what is computed; free: the others."""

    fixed: dict[str, Any]
    free: dict[str, Any]

    def to_json(self) -> str:
        return json.dumps(self._asdict())


def identify(settings: Mapping[str, Any], *, free: Iterable[str]) -> Identity:
    """free: names of settings and of sections."""
    names = tuple(free)
    parts: list[dict[str, Any]] = [{}, {}]
    for name, value in json.loads(json.dumps(flatten(settings))).items():
        parts[any(f"{name}.".startswith(f"{part}.") for part in names)][name] = value
    return Identity(*parts)


def check_same_run(
    saved: str, now: Identity, *, folder: Path, causes: Mapping[str, Iterable[str]] = {}
) -> list[Change]:
    """ValueError where a run's saved identity (JSON) is another in what is fixed. causes: free settings, by the last
    part of the name of a fixed one that follows from them. RETURNS: changes of what is free."""
    old = Identity(**json.loads(saved))
    free = {change.name: change for change in _changes(old.free, now.free)}
    if wrong := _changes(old.fixed, now.fixed):
        most = 10
        more = [f"and {len(wrong) - most} more"] if len(wrong) > most else []
        raise ValueError(
            f"{folder} belongs to a run with other settings or data, so going on would not give what either of them "
            "gives. Use the same ones, or start anew in another folder. They differ in:\n"
            + "\n".join([*(_explained(change, free, causes) for change in wrong[:most]), *more])
        )
    return list(free.values())


def _explained(change: Change, free: Mapping[str, Change], causes: Mapping[str, Iterable[str]]) -> str:
    changed = [str(free[name]) for name in causes.get(change.name.rpartition(".")[2], ()) if name in free]
    return f"{change}, which follows from {' and '.join(changed)}" if changed else str(change)


def flatten(config: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Settings by their dotted names; an empty section is a setting too."""
    leaves: dict[str, Any] = {}
    for name, value in config.items():
        full = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value:
            leaves.update(flatten(value, full))
        else:
            leaves[full] = value
    return leaves


def with_contents(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Flattened; in the place of a path, or of the beginning of several files' names, is a digest of what is there."""
    found = flatten(settings)
    for name, value in found.items():
        if isinstance(value, str) and value:
            path = Path(value)
            files = [path] if path.exists() else sorted(path.parent.glob(f"{path.name}[._]*"))
            if files:
                found[name] = f"data with the digest {' '.join(digest_with_names(file) for file in files)}"
    return found


def digest_with_names(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their names."""
    found = hashlib.sha256()
    files = sorted(x for x in path.rglob("*") if x.is_file()) if path.is_dir() else [path]
    for file in files:
        found.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as stream:
            while part := stream.read(_CHUNK):
                found.update(part)
    return found.hexdigest()


def _changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """What is not the same in both; None where there is none."""
    names = sorted(set(old) | set(new))
    return [Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def _shown(value: Any, most: int = 60) -> str:
    text = "null" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."

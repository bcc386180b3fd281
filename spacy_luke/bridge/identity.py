"""Whether a run that is gone on with is the same: its settings and the digests of its data, compared one by one."""

import hashlib
from pathlib import Path
from typing import Any, Dict, Iterable, List, Mapping, NamedTuple

CHUNK = 1 << 22


class Change(NamedTuple):
    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name}: was {_shown(self.old)}, now {_shown(self.new)}"


def flatten(config: Mapping[str, Any], path: str = "") -> Dict[str, Any]:
    """Settings by their dotted names, as JSON has them; an empty section is a setting too."""
    leaves: Dict[str, Any] = {}
    for name, value in config.items():
        full = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value:
            leaves.update(flatten(value, full))
        else:
            leaves[full] = list(value) if isinstance(value, tuple) else value
    return leaves


def changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> List[Change]:
    """Settings, flattened, that are not the same in both; None where there is none."""
    names = sorted(set(old) | set(new))
    return [Change(name, old.get(name), new.get(name)) for name in names if old.get(name) != new.get(name)]


def is_one_of(name: str, patterns: Iterable[str]) -> bool:
    """Whether a setting is one of these, or lies in a section of these."""
    return any(name == pattern or name.startswith(f"{pattern}.") for pattern in patterns)


def digest(path: Path) -> str:
    """SHA-256 of a file, or of all files in a folder with their names."""
    found = hashlib.sha256()
    files = sorted(x for x in path.rglob("*") if x.is_file()) if path.is_dir() else [path]
    for file in files:
        found.update(str(file.relative_to(path)).encode() + b"\0")
        with file.open("rb") as stream:
            while part := stream.read(CHUNK):
                found.update(part)
    return found.hexdigest()


def _shown(value: Any, most: int = 60) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= most else f"{text[:most]}..."

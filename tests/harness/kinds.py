"""All kinds of attacks, in the order in which they run."""

from .disks import DisksKind
from .docs import DocsKind
from .flips import FlipsKind
from .hostile import HostileKind
from .kills import KillsKind
from .runner import Kind
from .threads import ThreadsKind

KINDS: dict[str, type[Kind]] = {
    kind.name: kind for kind in (DocsKind, ThreadsKind, KillsKind, FlipsKind, HostileKind, DisksKind)
}

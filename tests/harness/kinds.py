"""All kinds of attacks, in the order in which they run."""

from typing import Dict, Type

from .docs import DocsKind
from .kills import KillsKind
from .runner import Kind
from .threads import ThreadsKind

KINDS: Dict[str, Type[Kind]] = {kind.name: kind for kind in (DocsKind, ThreadsKind, KillsKind)}

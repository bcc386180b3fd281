"""What `build-kb` and `starter-kb` say of a knowledge base that was built."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from wasabi import msg

from ..kb.knowledge_base import EntityKB


def tell_built(
    output: Path, kb: EntityKB, read: Mapping[str, int], left_out: Sequence[str], *, seconds: float | None = None
) -> None:
    """read: how many things of which kind; left_out: lines that say what was not taken, and why."""
    total = sum(path.stat().st_size for path in output.rglob("*") if path.is_file())
    msg.good(f"{output}: {total:,} bytes" + ("" if seconds is None else f" in {seconds:.0f} s"))
    rows = [(what, f"{count:,}") for what, count in read.items()]
    msg.table([*rows, ("entities", f"{len(kb):,}"), ("names", f"{kb.n_names:,}")], aligns=("l", "r"))
    for line in left_out:
        msg.text(f"Left out: {line}")

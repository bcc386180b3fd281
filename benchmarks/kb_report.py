"""The tables of `kb.py`."""

from typing import Any

LINES = {
    "entities, names": "{entities:,}, {names:,}",
    "build: wall-clock, processor, s": "{build_s:,}, {build_cpu_s:,}",
    "build: processor time for 1,000 entities, ms": "{each_ms}",
    "build: memory at its peak, MB": "{peak_mb:,}",
    "on the disk, MB": "{kb_mb:,}",
    "open: cold, again, ms": "{open_cold_ms}, {open_ms}",
    "open: memory, MB": "{open_mb}",
    "after 20,000 names: memory of its own, mapped and shared by processes, MB": "{own_mb}, {mapped_mb}",
    "names a second, with ids and priors of all candidates": "{lookups_per_second:,}",
    "the same, rows in place of ids": "{row_lookups_per_second:,}",
    "names in capitals a second": "{capitals_per_second:,}",
    "unknown names a second": "{unknown_per_second:,}",
    "descriptions a second": "{descriptions_per_second:,}",
}
SPACY_LINES = {
    "build: wall-clock, processor, s": "{build_s:,}, {build_cpu_s:,}",
    "build: memory at its peak, MB": "{peak_mb:,}",
    "on the disk, MB": "{kb_mb:,}",
    "open, ms": "{open_ms:,}",
    "after 20,000 names: memory of its own, MB": "{own_mb}",
    "names a second, with ids and priors of all candidates": "{lookups_per_second:,}",
}


def make_report(result: dict[str, Any]) -> str:
    found, sizes = result["measured"], result["sizes"]
    columns = [{**found[f"build:{size}"], **found[f"read:{size}"]} for size in sizes]
    for size, column in zip(sizes, columns, strict=True):
        column["each_ms"] = round(1e6 * column["build_cpu_s"] / size, 1)
    pairs = {
        size: ({**found[f"build:{size}"], **found[f"read:{size}"]}, {**found[f"spacy_build:{size}"], **found[f"spacy_read:{size}"]})  # noqa: E501
        for size in sizes
        if f"spacy_read:{size}" in found
    }  # fmt: skip
    others = "\n".join(
        f"""
{size:,} entities, the same answers:

| | EntityKB | InMemoryLookupKB |
|---|---|---|
{_table(SPACY_LINES, pair)}"""
        for size, pair in pairs.items()
    )
    return f"""# A knowledge base of {sizes[-1]:,} entities

Written by `python benchmarks/kb.py`. {result["chip"]}, one thread; the machine had other work (load {result["load"]}). Names are
made up, {columns[-1]["candidates_each"]} candidates for a name that is asked for on average. No vectors.
Rates are per second of processor time.

| | {" | ".join(f"{size:,}" for size in sizes)} |
|---|{"---|" * len(sizes)}
{_table(LINES, columns)}

## spaCy's InMemoryLookupKB

With vectors of one number, its smallest, and without descriptions, which it has not. Its look-ups are exact only.
{others}
"""  # noqa: E501


def _table(lines: dict[str, str], columns: Any) -> str:
    return "\n".join(
        f"| {title} | " + " | ".join(line.format(**column) for column in columns) + " |"
        for title, line in lines.items()
    )

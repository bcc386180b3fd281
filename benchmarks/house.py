"""Size and repetition of the package at several commits.

    python benchmarks/house.py 38c100d 6d7a86e HEAD      # results/house.md

Lines are those with code: without blanks, comments and docstrings. A copy is a run of six such lines or more that
stand elsewhere as well, indentation and imports apart; each line counts once. docs/results/stores.md says
which commits these are.
"""

import ast
import io
import subprocess
import sys
import tarfile
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

RUN = 6
RESULT = Path(__file__).parent / "results" / "house.md"
PACKAGE = "spacy_luke"


def main() -> None:
    rows = [describe(commit) for commit in sys.argv[1:]]
    lines = [
        "# Size and repetition of the package",
        "",
        "Written by `python benchmarks/house.py COMMIT ...`; docs/results/stores.md says which commits these are.",
        "",
        "| " + " | ".join(rows[0]) + " |",
        "| --- | --- |" + " ---: |" * (len(rows[0]) - 2),
        *("| " + " | ".join(row.values()) + " |" for row in rows),
    ]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf8")
    print("\n".join(lines))


def describe(commit: str) -> dict[str, str]:
    files = read_files(commit)
    code = {name: list(code_lines(text)) for name, text in files.items()}
    every = sum(text.count("\n") for text in files.values())
    counts = [len(lines) for lines in code.values()]
    longest = max(files, key=lambda name: files[name].count("\n"))
    functions = [length for text in files.values() for length in function_lengths(text)]
    date = git("show", "-s", "--format=%cs", commit).decode().strip()
    return {
        "commit": git("rev-parse", "--short=7", commit).decode().strip(),
        "date": date,
        "files": f"{len(files):,}",
        "lines": f"{every:,}",
        "lines of code": f"{sum(counts):,}",
        "longest file": f"{files[longest].count(chr(10)):,}",
        "longest function": f"{max(functions):,}",
        "lines in copies": f"{count_copied(code):,}",
    }


def git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], check=True, capture_output=True).stdout


def read_files(commit: str) -> dict[str, str]:
    """The package's Python files at a commit."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit, PACKAGE))) as archive:
        members = [x for x in archive.getmembers() if x.isfile() and x.name.endswith(".py")]
        return {x.name: archive.extractfile(x).read().decode("utf8") for x in members}  # type: ignore[union-attr]


def code_lines(text: str) -> Iterator[str]:
    """Lines with code, without their indentation; docstrings, comments and imports left out."""
    left_out = {
        number
        for node in ast.walk(ast.parse(text))
        if is_left_out(node)
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]
    }
    seen = {
        token.start[0]
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    }
    for number, line in enumerate(text.splitlines(), start=1):
        if number in seen and number not in left_out and line.strip():
            yield line.strip()


def is_left_out(node: ast.AST) -> bool:
    docstring = (
        isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    )
    return docstring or isinstance(node, ast.Import | ast.ImportFrom)


def function_lengths(text: str) -> Iterator[int]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def count_copied(code: dict[str, list[str]]) -> int:
    """Lines of runs that stand twice or more."""
    places = defaultdict(list)
    for name, lines in code.items():
        for start in range(len(lines) - RUN + 1):
            places["\n".join(lines[start : start + RUN])].append((name, start))
    copied = {
        (name, start + i) for found in places.values() if len(found) > 1 for name, start in found for i in range(RUN)
    }
    return len(copied)


if __name__ == "__main__":
    main()

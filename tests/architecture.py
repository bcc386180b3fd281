"""The map of the package, drawn from the walls and the packages' own docstrings into docs/architecture.md.

`python -m tests.architecture` draws it anew; tests/test_architecture.py says when it is old.
"""

import ast
import re
from pathlib import Path

from tests.walls import MODULES, ROOMS, ROWS

PAGE = Path(__file__).parents[1] / "docs" / "architecture.md"
BEGIN, END = "<!-- drawn by python -m tests.architecture -->", "<!-- end of what is drawn -->"


def first_line(module: str) -> str:
    """What a module's docstring begins with."""
    docstring = ast.get_docstring(ast.parse(MODULES[module].read_text(encoding="utf8"))) or ""
    return " ".join(docstring.split("\n\n")[0].split())


def packages_of(part: str) -> list[str]:
    """The part and the packages in it, or the one module that it is."""
    if part in MODULES:
        return [part]
    return sorted(
        name.removesuffix(".__init__") for name in MODULES if re.fullmatch(rf"{part}(\.\w+)*\.__init__", name)
    )


def draw_map() -> str:
    """A row of the table for each package, from the top floor to the ground."""
    lines = ["| floor | part | what is there | libraries |", "| --- | --- | --- | --- |"]
    for floor, row in reversed(list(enumerate(reversed(ROWS)))):
        for part in row:
            for name in packages_of(part):
                path = name.replace(".", "/")
                path, module = (f"{path}.py", name) if name in MODULES else (path, f"{name}.__init__")
                libraries = [library for library, rooms in ROOMS.items() if part in rooms]
                what = first_line(module).rstrip(".").replace("|", "\\|")
                lines.append(f"| {floor} | `spacy_luke/{path}` | {what} | {', '.join(libraries)} |")
    return "\n".join(lines)


def with_map(page: str) -> str:
    """The page with the map drawn anew between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError(f"expected the lines {BEGIN!r} and {END!r} in {PAGE}, but they are not there")
    return f"{before}{BEGIN}\n{draw_map()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_map(PAGE.read_text(encoding="utf8")), encoding="utf8")

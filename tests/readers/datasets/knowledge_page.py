"""A small page of KnowledgeNet, by hand."""

from pathlib import Path

LINK = '<a href="http://www.wikidata.org/entity/Q7" target="_blank">'
ED = f'<span id="subject">{LINK}Ed Ott</a></span>'


def row(document, place, ends, name, passage):
    cells = ["1", document, *map(str, place), *map(str, ends), name, f"<p> {passage}</p>"]
    return "<tr>" + "".join(f'<td style="x">{cell}</td>' for cell in cells) + "</tr>\n"


TEXT = "Ed Ott, of A&B, was born in Bonn."
ROWS = [
    row("12", (10, 43), (10, 16, 38, 42), "PLACE_OF_BIRTH",
        f'{ED}, of A&B, was born in <span id="object">Bonn</span>.'),
    row("12", (10, 43), (10, 16, 21, 24), "EMPLOYEE_OR_MEMBER_OF",
        f'{ED}, of <span id="object">A&B</span>, was born in Bonn.'),
    row("12", (10, 43), ("-", "-", "-", "-"), "SPOUSE", TEXT),
    row("12", (44, 55), (44, 46, 50, 54), "PLACE_OF_RESIDENCE",
        '<span id="subject">He</span> in <span id="object">Rome</span>'),
]  # fmt: skip


def write_page(path: Path, rows: list[str]) -> Path:
    path.write_text("<HTML><tr class='header'><th>Fold</th></tr><tbody>\n" + "".join(rows), encoding="utf8")
    return path

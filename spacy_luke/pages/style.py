"""What the pages share: the frame with its style sheet, colors, and how numbers and texts are shown."""

from pathlib import Path

from ..stores.atomic import write_atomically

COLORS = ["#8fd3e8", "#f8c66d", "#b8a9f5", "#a9dcb0", "#f2a38c", "#e7d96b", "#a3c4f3", "#e3a5d1", "#c3d68a", "#d4bfa6"]
PAGE = """<!DOCTYPE html>
<html lang="{lang}" dir="{direction}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; --text: #1c2430; --soft: #5a6675; --line: #d9dee6; --page: #fff; --link: #2059a8;
  --wrong: #b3261e; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --text: #e4e8ee; --soft: #a0abba; --line: #38424f; --page: #14181d; --link: #8ab4f8; --wrong: #f2a09a; }}
}}
body {{ font: 16px/1.5 -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: var(--text);
  background: var(--page); max-width: 62rem; margin: 2.5rem auto; padding: 0 1.5rem; overflow-wrap: anywhere; }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.15rem; margin: 2.2rem 0 .8rem; border-bottom: 1px solid var(--line); padding-bottom: .3rem; }}
a {{ color: var(--link); text-decoration: none; }}
a:hover, a:focus {{ text-decoration: underline; }}
.counts, .others, .score, .about {{ color: var(--soft); }}
.counts {{ margin: .2rem 0 0; }}
.verdict {{ margin: 1rem 0; display: grid; grid-template-columns: max-content auto; gap: 0 1rem; }}
.verdict dt {{ font-weight: 600; }}
.verdict dd {{ margin: 0; }}
.legend {{ list-style: none; padding: 0; margin: 1.2rem 0 0; display: flex; flex-wrap: wrap; gap: .3rem 1.1rem; }}
.entities {{ line-height: 2 !important; }}
mark {{ color: #1c2430; border-radius: .3em; }}
mark.entity {{ padding: .12em .35em; -webkit-box-decoration-break: clone; box-decoration-break: clone; }}
mark.entity:target {{ outline: .15em solid var(--link); }}
.label {{ font-size: .68em; font-weight: 700; margin-inline-start: .4em; letter-spacing: .03em; }}
.types {{ font-size: .72em; margin-inline-start: .45em; color: #33404f; }}
.answer {{ margin: 0 0 1.3rem; }}
.answer p {{ margin: .15rem 0; }}
.question {{ font-weight: 600; }}
.answer mark {{ background: #ffe27a; padding: .12em .25em; }}
.others, .score {{ font-size: .85em; }}
.wrong {{ color: var(--wrong); }}
table {{ border-collapse: collapse; font-size: .92em; width: 100%; }}
th, td {{ text-align: start; padding: .25rem 1rem .25rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; }}
th {{ font-weight: 600; }}
th, td {{ overflow-wrap: break-word; }}
td.c-link {{ overflow-wrap: anywhere; }}
.number {{ font-variant-numeric: tabular-nums; }}
details {{ margin-top: 2rem; }}
summary {{ cursor: pointer; color: var(--link); }}
@media (max-width: 40rem) {{
  body {{ margin: 1rem auto; padding: 0 .8rem; }}
  table {{ font-size: .8em; }}
  th, td {{ padding-inline-end: .5rem; }}
  .c-times, .c-link-score {{ display: none; }}
}}
@media print {{ body {{ max-width: none; margin: 0; }} mark {{ print-color-adjust: exact; }} }}
</style>
</head>
<body>
<main>
<h1>{title}</h1>
<p class="counts">{counts}</p>
{content}
</main>
</body>
</html>
"""


def probability(score: float | None) -> str:
    return "" if score is None else f"{score:.3f}"


def one_line(text: str) -> str:
    return " ".join(text.split())


def save_page(page: str, path: Path) -> None:
    """Write a page as a whole; its folder is made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with write_atomically(path) as temporary:
        temporary.write_text(page, encoding="utf8")

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
body {{ font: 16px/1.5 -apple-system, "Segoe UI", "Helvetica Neue", Helvetica, Arial, sans-serif; color: #1c2430;
  background: #fff; max-width: 62rem; margin: 2.5rem auto; padding: 0 1.5rem; }}
h1 {{ font-size: 1.5rem; margin: 0; }}
h2 {{ font-size: 1.15rem; margin: 2.6rem 0 .8rem; border-bottom: 1px solid #d9dee6; padding-bottom: .3rem; }}
.counts, .others, .types, .score {{ color: #5a6675; }}
.counts {{ margin: .2rem 0 0; }}
.entities {{ line-height: 2.35 !important; }}
mark {{ color: inherit; border-radius: .3em; }}
mark.entity {{ padding: .22em .4em; margin: 0 .12em; -webkit-box-decoration-break: clone;
                 box-decoration-break: clone; }}
.label {{ font-size: .68em; font-weight: 700; margin-inline-start: .5em; letter-spacing: .03em; }}
.types {{ font-size: .72em; margin-inline-start: .45em; color: #33404f; }}
.answer {{ margin: 0 0 1.3rem; }}
.answer p {{ margin: .15rem 0; }}
.question {{ font-weight: 600; }}
.answer mark {{ background: #ffe27a; padding: .12em .25em; }}
.others, .score {{ font-size: .85em; }}
figure {{ margin: 0 0 1.2rem; padding: .9rem .6rem 0; border: 1px solid #e4e8ee;
          border-radius: .5rem; overflow-x: auto; }}
figure svg {{ display: block; margin-bottom: -1.9rem; }}
.displacy-word {{ font-size: 14px; }}
.displacy-tag {{ font-size: 11px; font-weight: 700; fill: #5a6675; }}
.displacy-arrow {{ color: #2d6cb5; }}
.displacy-label {{ font-weight: 600; }}
table {{ border-collapse: collapse; font-size: .92em; }}
th, td {{ text-align: start; padding: .25rem 1.4rem .25rem 0; border-bottom: 1px solid #eceff3; vertical-align: top; }}
th {{ font-weight: 600; }}
td.number {{ text-align: end; font-variant-numeric: tabular-nums; }}
details {{ margin-top: 1rem; }}
summary {{ cursor: pointer; color: #2d6cb5; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p class="counts">{counts}</p>
{content}
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

"""What `make docs` does beside MkDocs: pages of files that lie elsewhere in the repository, links, and a check that the
site takes nothing from the network.

Links are written as they hold in the repository: `../CONTRIBUTING.md`, `../benchmarks/README.md`. Here they become
links to the pages made of these files; links to files that are no pages become their text.
"""

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
TABLES = "benchmarks/results/*.md"
# Files of the repository and the pages that are made of them.
MADE = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "benchmarks/README.md": "results/benchmarks.md",
    **{f"notebooks/{x.name}": f"notebooks/{x.stem}.md" for x in sorted(ROOT.glob("notebooks/*.ipynb"))},
    **{f"benchmarks/results/{x.name}": f"results/tables/{x.name}" for x in sorted(ROOT.glob(TABLES))},
}
ORIGINS = {page: origin for origin, page in MADE.items()}
# Pages that show what a notebook prints.
SHOWN = {
    "types": "tasks/typing.md",
    "questions": "tasks/questions.md",
    "cloze": "tasks/cloze.md",
    "ernie": "tasks/ernie.md",
    "wikipedia": "tasks/pretraining.md",
}
LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
OUTSIDE = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?(?:https?:)?//[^>]*>""")
FORM = "<!-- the form of init-config -->"


def on_config(config: Any) -> None:
    """The tables of results are in the navigation without being named in mkdocs.yml."""
    (section,) = (x["Results"] for x in config.nav if isinstance(x, dict) and "Results" in x)
    origins = [origin for origin in MADE if origin.startswith("benchmarks/results/")]
    titles = {
        x: (ROOT / x).read_text(encoding="utf8").partition("\n")[0].removeprefix("# ").replace("`", "") for x in origins
    }
    tables = []
    for origin, title in titles.items():
        part = Path(origin).stem.partition("_")[2]
        alone = list(titles.values()).count(title) == 1
        tables.append({title if alone or not part else f"{title}: {part}": MADE[origin]})
    section.append({"All tables": tables})


def on_files(files: Any, config: Any) -> None:
    for origin, page in MADE.items():
        if files.get_file_from_path(page):
            raise PluginError(f"{origin} would take the place of docs/{page}: give one of them another name")
        text = (ROOT / origin).read_text(encoding="utf8")
        files.append(File.generated(config, page, content=as_page(text, origin) if origin.endswith(".ipynb") else text))


def as_page(text: str, origin: str) -> str:
    """A notebook's cells as a page: text as it is, code in blocks, and after the title where the notebook lies."""
    cells = [(cell["cell_type"], "".join(cell["source"])) for cell in json.loads(text)["cells"]]
    title, *parts = [x if kind == "markdown" else f"```python\n{x}\n```" for kind, x in cells]
    heading, _, rest = title.partition("\n")
    where = f"*The notebook `{origin}` of the repository.*"
    if page := SHOWN.get(Path(origin).stem):
        where += f" *What it prints is shown [here](../docs/{page}#on-real-data).*"
    return "\n\n".join([heading, where, rest.strip(), *parts]) + "\n"


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    here = page.file.src_uri
    origin = ORIGINS.get(here, f"docs/{here}")

    def led(match: re.Match[str]) -> str:
        text, target = match.groups()
        path, mark, place = target.partition("#")
        if re.match(r"\w+:", target) or not path:
            return match[0]
        goal = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        led_to = MADE.get(goal) or (goal.removeprefix("docs/") if goal.startswith("docs/") else None)
        if led_to is None:
            if not (ROOT / goal).exists():
                raise PluginError(f"{origin} leads to {target}, which is not there")
            return text
        return f"[{text}]({posixpath.relpath(led_to, posixpath.dirname(here) or '.')}{mark}{place})"

    parts = re.split(r"(^```.*?^```)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else LINK.sub(led, part) for part in parts)


def on_post_page(output: str, page: Any, config: Any) -> None:
    if found := OUTSIDE.search(output):
        raise PluginError(f"{page.file.src_uri} takes something from the network: {found[0]}")


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """The form that writes what `spacy luke init-config` writes: the rules and the script stand in the page."""
    if FORM not in html:
        return html
    rules = (ROOT / "spacy_luke" / "quickstart" / "rules.json").read_text(encoding="utf8")
    script = (ROOT / "docs" / "_site" / "quickstart.js").read_text(encoding="utf8")
    if "</" in rules + script:
        raise PluginError("The rules and the script of init-config's form stand inside <script>, and may not have </.")
    form = f'<div id="quickstart"></div><script>const RULES = {rules};\n{script}</script>'
    return html.replace(FORM, form)

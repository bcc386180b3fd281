"""The page of `spacy luke annotate` and of the service: what a pipeline found in a text, for the browser.

One file that needs no network. Its code and style are `browser/*.js` and `browser/page.css`; what was found stands in
it as JSON, which the browser does not run; a content security policy names the digests of the code and the style, so
that nothing else can run, and forbids every request. Nothing of users becomes HTML: `browser/elements.js` makes all.
"""

import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any

from spacy.tokens import Doc

from .answer_key import Judgement
from .findings import Findings
from .schema import AnnotatedText, as_form

BROWSER = Path(__file__).parent / "browser"
MODULES = (  # in an order in which each has what it needs; joined they are one module
    "elements",
    "places",
    "findings",
    "layout",
    "text",
    "card",
    "tables",
    "arcs",
    "graph",
    "files",
    "controls",
    "tabs",
    "live",
    "main",
)
IMPORT = re.compile(r'^import ({[^}]*}) from "\./(\w+)\.js";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (function|const|class) (\w+)", re.MULTILINE)


def render_page(found: Findings, *, title: str, judged: Judgement | None = None, pipeline: str = "") -> str:
    """A whole HTML page. judged: which findings are right, where a key of the text told; pipeline: who found it."""
    right = None
    if judged is not None:
        right = {"mentions": [judged.is_right(i) for i in range(len(judged.mentions))], "relations": judged.relations}
    return fill_page(
        as_form(found, pipeline=pipeline),
        title=title,
        labels=found.labels,
        direction=direction_of(found.doc),
        right=right,
        verdict=[] if judged is None else judged.verdict(),
    )


def fill_page(
    form: AnnotatedText,
    *,
    title: str,
    labels: Sequence[str] = (),
    direction: str = "ltr",
    right: dict[str, Any] | None = None,
    verdict: Sequence[tuple[str, str]] = (),
    live: dict[str, Any] | None = None,
) -> str:
    """labels: of entities, in the order of their colors; right: of mentions and of relations whether they are right;
    live: for the page of the service, where to send a text ("annotate"), how long it may be ("most") and whether the
    pipeline answers questions ("asks")."""
    script, style = read_script(), (BROWSER / "page.css").read_text(encoding="utf8")
    page = {
        "title": title,
        "labels": list(labels),
        "direction": direction,
        "right": right,
        "verdict": verdict,
        **(live or {}),
    }
    return Template((BROWSER / "page.html").read_text(encoding="utf8")).substitute(
        policy=policy(script, style, live=live is not None),
        title=escape(title),
        style=style,
        annotations=in_script(form.model_dump()),
        page=in_script(page),
        script=script,
    )


def policy(script: str, style: str, *, live: bool = False) -> str:
    """The content security policy: this code and this style, and of the network the service itself at most."""
    rules = {
        "default-src": "'none'",
        "script-src": _digest(script),
        "style-src": _digest(style),
        "connect-src": "'self'" if live else "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
    }
    return "; ".join(f"{name} {value}" for name, value in rules.items())


def direction_of(doc: Doc) -> str:
    """ "ltr" or "rtl", as the text's language is written."""
    return str(doc.vocab.writing_system.get("direction", "ltr"))


@cache
def read_script(modules: Sequence[str] = MODULES) -> str:
    """Modules of the page as one: each is a function that gives what it exports."""
    parts, seen = [], set[str]()
    for name in modules:
        source = (BROWSER / f"{name}.js").read_text(encoding="utf8")
        needed = {module for _, module in IMPORT.findall(source)}
        assert needed <= seen, f"{name}.js needs {needed - seen}, which must stand before it in MODULES"
        seen.add(name)
        given = ", ".join(exported for _, exported in EXPORT.findall(source))
        body = IMPORT.sub(r"const \1 = module_\2;\n", source)
        body = EXPORT.sub(lambda found: found[0].removeprefix("export "), body)
        parts.append(f"const module_{name} = (() => {{\n{body}return {{ {given} }};\n}})();\n")
    return "".join(parts)


def in_script(data: object) -> str:
    """JSON that can stand in a <script>: nothing in it can end the script, or begin a comment."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode('utf8')).digest()).decode('ascii')}'"

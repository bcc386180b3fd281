"""The reference pages in docs/reference, drawn from the code: components with their settings, and the other functions
that configs name, with theirs.

`python -m tests.setting_tables` draws them anew; tests/test_docs.py says when they are old. What a setting means stands
in the line of its `Setting`, or in the docstring of its function, as `name: what it means`.
"""

import inspect
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, get_type_hints

from spacy.language import Language

from spacy_luke.components.factories import Configured, settings_of

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "docs" / "reference"
ENTRY_POINTS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf8"))["project"]["entry-points"]
# Components in the order of the page, and the pages that tell of them.
TOLD = {
    "luke_ner": "tasks/ner.md",
    "luke_typer": "tasks/typing.md",
    "luke_relation": "tasks/relations.md",
    "luke_linker": "tasks/linking.md",
    "luke_qa": "tasks/questions.md",
    "luke_cloze": "tasks/cloze.md",
    "luke_encoder": "howto/one-encoder.md",
    "entity_annotator": "tasks/names.md",
    "ernie_typer": "tasks/ernie.md",
    "ernie_relation": "tasks/ernie.md",
    "ernie_encoder": "tasks/ernie.md",
    "paragraph_sentencizer": "howto/long-texts.md",
    "soft_textcat": "tasks/ernie.md",
}
# Groups of entry points: title and introduction of their section, and where configs write their names.
GROUPS = {
    "spacy_architectures": ("Models and encoders", "architectures"),
    "spacy_readers": ("Readers", "readers"),
    "spacy_misc": ("Checkpoints, getters and suggesters", "misc"),
    "spacy_scorers": ("Scorers", "scorers"),
    "thinc_optimizers": ("Optimizers", "optimizers"),
    "thinc_schedules": ("Schedules", "schedules"),
    "spacy_callbacks": ("Callbacks", "callbacks"),
    "spacy_augmenters": ("Augmenters", "augmenters"),
    "spacy_batchers": ("Batchers", "batchers"),
    "spacy_loggers": ("Loggers", "loggers"),
}
NO_SETTINGS = {"nlp", "name", "get_examples", "counted"}  # given by spaCy, or filled in by training
HEADER = "| setting | default | |\n| --- | --- | --- |"
DRAWN = "<!-- drawn by python -m tests.setting_tables -->\n\n"


def entry_points(group: str) -> list[EntryPoint]:
    """Those of pyproject.toml, installed or not."""
    return [EntryPoint(name, value, group) for name, value in sorted(ENTRY_POINTS[group].items())]


def anchor(heading: str) -> str:
    """As GitHub and Python-Markdown make it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")


def title_of(page: str) -> str:
    return (REFERENCE.parent / page).read_text(encoding="utf8").partition("\n")[0].removeprefix("# ")


def shown(default: Any) -> str:
    """A value as a config has it; of what a function makes, the name of the function."""
    if default is inspect.Parameter.empty:
        return ""
    if isinstance(default, dict) and any(key.startswith("@") for key in default):
        made = next(f"`{value}`" for key, value in default.items() if key.startswith("@"))
        others = {key: x for key, x in default.items() if not key.startswith("@") and x not in (None, False)}
        given = ", ".join(f"`{key} = {json.dumps(value)}`" for key, value in others.items())
        return f"{made} with {given}" if given else made
    return f"`{json.dumps(default, ensure_ascii=False)}`"


def first_paragraph(thing: object) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def told(function: Callable[..., Any]) -> list[str]:
    """The paragraphs of a docstring up to its parameters: what is indented is a block of a config, lines like `name:
    meaning` are a list."""
    names = "|".join(inspect.signature(function).parameters) or "$"
    blocks: list[str] = []
    for part in (inspect.getdoc(function) or "").split("\n\n"):
        part = re.split(rf"(?:^|(?<=\. ))(?:(?:{names})(?:, \w+)*|RETURNS): ", part, maxsplit=1, flags=re.MULTILINE)[0]
        if part.startswith("    "):
            code = "\n".join(line[4:] for line in part.splitlines())
            if blocks and blocks[-1].startswith("```"):
                blocks[-1] = f"{blocks[-1].removesuffix('```')}\n{code}\n```"
            else:
                blocks.append(f"```ini\n{code}\n```")
        elif re.match(r"\w+: ", part):
            lines = [" ".join(x.split()) for x in re.split(r"\n(?=\w+: )", part)]
            blocks.append("\n".join(re.sub(r"^(\w+): ", r"- `\1`: ", line) for line in lines))
        elif part.strip():
            blocks.append(" ".join(part.split()))
    return [x if x.startswith("```") else x.replace('"*"', '`"*"`') for x in blocks]


def meanings(function: Callable[..., Any]) -> dict[str, str]:
    """What its docstring says of each parameter, after `name: ` or `name, other: `, to the next one or the paragraph's
    end."""
    text = inspect.getdoc(function) or ""
    names = "|".join(inspect.signature(function).parameters)
    found = list(re.finditer(rf"(?:^|(?<=; )|(?<=\. )|(?<=\.\n))((?:{names})(?:, (?:{names}))*): ", text, re.MULTILINE))
    said = {}
    for here, after in zip(found, [*found[1:], None]):
        meaning = text[here.end() : after.start() if after else None].split("\n\n")[0].split("RETURNS:")[0]
        meaning = re.split(r" (?:Raises|The rest:) ", " ".join(meaning.split()))[0]
        said.update(dict.fromkeys(here[1].split(", "), meaning.rstrip("; .").replace("|", "\\|")))
    return said


def rows_of(function: Callable[..., Any], without: Iterable[str] = ()) -> list[str]:
    """A row for each parameter of a registered function."""
    said = meanings(function)
    parameters = [x for x in inspect.signature(function).parameters.values() if x.name not in {"self", *without}]
    if "encoder" in {x.name for x in parameters}:
        said.setdefault("encoder", f"one of the [encoders](#{anchor(GROUPS['spacy_architectures'][0])})")
    return [f"| `{x.name}` | {shown(x.default)} | {said.get(x.name, '')} |" for x in parameters]


def model_row(block: Mapping[str, Any]) -> str:
    name = block["@architectures"]
    others = [f"`{key} = {json.dumps(x)}`" for key, x in block.items() if key[0] != "@" and not isinstance(x, dict)]
    link = f"its settings are [there](functions.md#{anchor(name)})" if name.startswith("spacy-luke") else "spaCy's"
    return f"| `model` | `{name}` | {link}{'; here with ' + ', '.join(others) if others else ''} |"


def draw_component(point: EntryPoint) -> list[str]:
    """What a component does and assigns, its settings, and what `[initialize]` may have for it."""
    factory = point.load()
    made = get_type_hints(factory)["return"]
    meta = Language.get_factory_meta(point.name)
    lines = [f"## `{point.name}`", first_paragraph(made if issubclass(made, Configured) else factory)]
    lines.append(f"Told in [{title_of(TOLD[point.name])}](../{TOLD[point.name]}).")
    if meta.requires:
        lines.append(f"Requires {', '.join(f'`{x}`' for x in meta.requires)}, by its defaults.")
    if meta.assigns:
        lines.append(f"Assigns {', '.join(f'`{x}`' for x in meta.assigns)}.")
    if meta.default_score_weights:
        weights = [f"`{key}` ({x})" if x else f"`{key}`" for key, x in meta.default_score_weights.items()]
        lines.append(f"Scores, and what they weigh in `score`: {', '.join(weights)}.")
    if issubclass(made, Configured):
        settings = settings_of(made)
        rows = [
            f"| `{key}` | {shown(meta.default_config[key])} | {x.about} |"
            for key, x in settings.items()
            if key in meta.default_config
        ]
    else:
        rows = [
            f"| `{key}` | {shown(x)} | {meanings(factory).get(key, '')} |"
            for key, x in meta.default_config.items()
            if key != "model"
        ]
    model = [model_row(meta.default_config["model"])] if "model" in meta.default_config else []
    lines.append("\n".join([HEADER, *model, *rows]))
    if issubclass(made, Configured) and "initialize" in dir(made):
        lines.append(f"`[initialize.components.{point.name}]`:")
        lines.append("\n".join([HEADER, *rows_of(made.initialize, NO_SETTINGS)]))
    return lines


def draw_components() -> str:
    points = {x.name: x for x in entry_points("spacy_factories")}
    lines = [
        "# Components",
        DRAWN + "All components with all settings. A setting is given in `nlp.add_pipe(name, config={...})`, in a "
        "config's `[components.NAME]`, or in `spacy.load(path, config={...})`; numbers, strings and lists afterwards "
        'by `nlp.get_pipe(name).cfg["threshold"] = 0.8`, which refuses names and values that no setting has (but of '
        "`paragraph_sentencizer` and `soft_textcat`, which are spaCy's), what a function makes by the attribute. "
        '`cfg["labels"]` of a component that has learned takes other names for its labels, as many as there are; '
        "`add_label` adds one. What is given in `[initialize]` is read once, by `nlp.initialize` and `train`.",
    ]
    for name in TOLD:
        lines += draw_component(points[name])
    return "\n\n".join(lines) + "\n"


def draw_functions() -> str:
    lines = [
        "# Registered functions",
        DRAWN
        + "What configs name by `@architectures`, `@misc` and so on, with all settings. The components themselves "
        "are in [Components](components.md).",
    ]
    for group, (title, kind) in GROUPS.items():
        lines += [f"## {title}", f"Named by `@{kind}`."]
        for point in entry_points(group):
            function = point.load()
            about, *more = told(function)
            about = re.sub(rf"^`{re.escape(point.name)}`[:,] ", "", about)
            lines += [f"### `{point.name}`", about[0].upper() + about[1:], *more]
            rows = rows_of(function, NO_SETTINGS)
            if rows:
                lines.append("\n".join([HEADER, *rows]))
    return "\n\n".join(lines) + "\n"


PAGES = {REFERENCE / "components.md": draw_components, REFERENCE / "functions.md": draw_functions}

if __name__ == "__main__":
    for path, draw in PAGES.items():
        path.write_text(draw(), encoding="utf8")

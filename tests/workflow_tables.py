"""The page of workflows in docs/reference, drawn from project.yml: their steps, and the data that they need.

`python -m tests.workflow_tables` draws it anew; tests/test_docs.py says when it is old.
"""

from pathlib import Path
from typing import Any

from tests.project_file import load_project

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference" / "workflows.md"
INTRODUCTION = """# Workflows

<!-- drawn by python -m tests.workflow_tables -->

`python -m spacy project run NAME` runs a workflow, step by step; a step whose inputs are those of the last run is left
out. `python -m spacy project assets` downloads the data that have an address, and checks the others. The `vars` of
`project.yml` are changed behind a dot: `python -m spacy project run ner . --vars.config ner_conll03_large`.
[Which is which](../howto/workflows.md)."""


def cell(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|").rstrip(".")


def where_from(asset: dict[str, Any]) -> str:
    if "url" in asset or "git" in asset:
        return "downloaded"
    return "by a step" if "`fetch-" in asset["description"] else "yours"


def draw_workflows() -> str:
    project: dict[str, Any] = load_project()
    helps = {command["name"]: cell(command.get("help")) for command in project["commands"]}
    rows = [
        f"| `{name}` | {'<br>'.join(f'`{step}`: {helps[step]}' for step in steps)} |"
        for name, steps in project["workflows"].items()
    ]
    inside = {step for steps in project["workflows"].values() for step in steps}
    rows += [f"| `{name}` | {about} |" for name, about in helps.items() if name not in inside]
    data = [f"| `{x['dest']}` | {where_from(x)} | {cell(x.get('description'))} |" for x in project["assets"]]
    lines = [INTRODUCTION, "## Steps", "\n".join(["| workflow | steps |", "| --- | --- |", *rows])]
    lines += ["## Data", "Where an address is missing, the licence does not let it be passed on, or there is none."]
    lines += ["\n".join(["| file | | what it is, and its licence |", "| --- | --- | --- |", *data])]
    return "\n\n".join(lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(draw_workflows(), encoding="utf8")

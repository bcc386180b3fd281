"""The Dockerfile, which is built nowhere here: each of its lines is what it seems to be. `.ci/run` lints it."""

import json
import re
from pathlib import Path

from tests.ready_pipeline import ASSETS
from tests.spacy_cli import find_command

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf8")
LINES = [line for line in TEXT.replace("\\\n", " ").splitlines() if not line.startswith("#")]
STEPS = {line.split()[0]: line.split(maxsplit=1)[1] for line in LINES}


def test_the_command_is_there():
    assert [line.split()[0] for line in LINES][-1] == "CMD"
    command, words = find_command(json.loads(STEPS["CMD"])[3:])
    assert command.name == "serve"
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known


def test_the_ready_pipeline_is_installed():
    (pattern,) = re.findall(r"/src/assets/(\S+)", STEPS["RUN"])
    assert len(list(ASSETS.glob(pattern))) == 1
    assert STEPS["COPY"] == ". /src"


def test_health_is_asked_where_the_service_listens():
    words = json.loads(STEPS["CMD"])
    port = words[words.index("--port") + 1]
    code = json.loads(STEPS["HEALTHCHECK"].partition("CMD ")[2])[2]
    compile(code, "HEALTHCHECK", "exec")
    assert f"127.0.0.1:{port}/health" in code
    assert STEPS["EXPOSE"] == port
    assert '"/health"' in (ROOT / "spacy_luke/service/app.py").read_text(encoding="utf8")


def test_it_runs_as_nobody_in_particular():
    assert STEPS["USER"].isdigit()
    assert f"--uid {STEPS['USER']} " in STEPS["RUN"]


def test_the_docs_show_it():
    shown = re.search(
        r"```dockerfile\n(.*?)```", (ROOT / "docs/howto/serving.md").read_text(encoding="utf8"), re.DOTALL
    )
    assert shown[1].split() == TEXT.partition("\n")[2].split()

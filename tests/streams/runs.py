"""Runs in small, and what they leave."""

import json
from pathlib import Path

import spacy

from spacy_luke.streams.annotated import AnnotatedParts
from spacy_luke.streams.input_formats import InputFields
from spacy_luke.streams.inputs import find_inputs
from spacy_luke.streams.run import ApplySettings, apply_pipeline
from tests.tiny import SENTENCES

SMALL = ApplySettings(part_words=100, part_documents=7, batch_words=30)


def find(*paths, format=None, **fields):
    return find_inputs([str(x) for x in paths], format=format, fields=InputFields(**fields))


def tree(folder: Path) -> dict[str, bytes]:
    return {str(x.relative_to(folder)): x.read_bytes() for x in sorted(folder.rglob("*")) if x.is_file()}


def apply_to_poison(pipeline, folder, engine):
    """Sixty texts, of which one kills the worker that reads it, as the system does: all others are there, in order.
    RETURNS: what is told of that one."""
    code = folder / "code.py"
    code.write_text(
        "import os, signal\n"
        "from spacy.language import Language\n"
        "@Language.component('poison')\n"
        "def poison(doc):\n"
        "    if 'Poison' in doc.text:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return doc\n"
    )
    spacy.util.import_file("code", code)
    nlp = spacy.load(pipeline)
    nlp.add_pipe("poison", first=True)
    nlp.to_disk(folder / "pipeline")
    path = folder / "texts.jsonl"
    texts = [f"{SENTENCES[i % 4]} {'Poison' * (i == 7)}" for i in range(60)]
    path.write_text("".join(json.dumps({"id": str(i), "text": x}) + "\n" for i, x in enumerate(texts)), "utf8")
    settings = ApplySettings(part_words=1000, part_documents=20, batch_words=30, code=str(code))
    state = apply_pipeline(folder / "pipeline", find(path), folder / "out", settings, engine=engine)
    parts = AnnotatedParts.open(folder / "out")
    assert [x.id for x in parts.texts()] == [str(i) for i in range(60) if i != 7]
    assert state.deaths >= 3, "twice the part as it is, and then the document alone"
    failed = list(parts.failed())
    assert [(x["id"], x["error"]) for x in failed] == [("7", "WorkerDied")]
    return failed

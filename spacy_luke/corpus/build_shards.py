"""Shards of linked corpora: a task for each part of a corpus, on whichever engine, and then all of them in one
folder."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from ..entity_vocab import EntityVocab
from ..stores.atomic import write_atomically
from ..stores.parallel import Engine
from ..stores.work_folder import WorkFolder
from ..text.tokenizer import PieceTokenizer
from .examples import ExampleMaker, ExampleSettings, Sentences
from .linked_corpus import LinkedCorpus, group_pages, read_linked_part
from .shard_writer import ShardWriter, make_block
from .shards import SHARDS, Example, Shards, entity_vocab_sha256, tokenizer_fingerprint

_LIMITS = ("max_pieces", "max_entities", "max_mention_pieces")


def build_shards(
    corpora: Sequence[LinkedCorpus],
    output: str | Path,
    *,
    tokenizer: PieceTokenizer,
    vocab: EntityVocab,
    sentences: Sentences,
    settings: ExampleSettings = ExampleSettings(),
    engine: Engine = Engine(),
    progress: bool = False,
) -> Shards:
    """The examples of all pages of the corpora, in order. sentences: can be pickled, and its repr tells all that it
    does.

    The manifest counts what was taken and what was left out. Where it fails or is killed, the output is as it was, and
    the next run with the same corpora and settings goes on. Raises ValueError where no example comes out.
    """
    output = Path(output)
    SHARDS.check_replaceable(output)
    plan = {
        "format": SHARDS.form,
        "corpora": [[corpus.language, corpus.digest] for corpus in corpora],
        "tokenizer": tokenizer_fingerprint(tokenizer),
        "entity_vocab": entity_vocab_sha256(vocab),
        "sentences": repr(sentences),
        "settings": asdict(settings),
    }
    with WorkFolder(output, plan) as work:
        for name, text in (("tokenizer", tokenizer.to_json()), ("vocab", vocab.to_json())):
            with write_atomically(work.path / f"{name}.txt") as temporary:
                temporary.write_bytes(text.encode("utf8"))
        tasks = [(corpus.language, str(part), sentences, settings) for corpus in corpora for part in corpus.parts]
        of_parts = [number for number, corpus in enumerate(corpora) for _ in corpus.parts]
        counts: Counter[str] = Counter()
        examples = [0] * len(corpora)
        limits = {name: getattr(settings, name) for name in _LIMITS}
        with ShardWriter(output, tokenizer=tokenizer, vocab=vocab, limits=limits) as writer:
            results = work.run(make_shard_part, tasks, name="block", engine=engine, progress=progress)
            for number, result in enumerate(results):
                counts.update(result["counts"])
                examples[of_parts[number]] += result["counts"]["examples"]
                with np.load(work.path / f"block-{number:05d}.npz", allow_pickle=False) as block:
                    writer.write(dict(block), result["pages"])
            info = {name: plan[name] for name in ("corpora", "sentences", "settings")}
            writer.finish(counts=dict(sorted(counts.items())), info={**info, "examples_of_corpora": examples})
    return Shards.open(output)


def make_shard_part(folder: Path, name: str, task: tuple[Any, str, Sentences, ExampleSettings]) -> dict[str, Any]:
    """The task that makes the examples of a part of a corpus."""
    language, part, sentences, settings = task
    tokenizer, vocab = _load(folder)
    maker = ExampleMaker(tokenizer, vocab, sentences, settings, language)
    counts: Counter[str] = Counter(examples=0, pages=0)
    examples: list[Example] = []
    pages: list[tuple[str, int]] = []
    for title, paragraphs in group_pages(read_linked_part(Path(part))):
        page = maker.page(title, paragraphs, counts)
        if page.examples:
            examples += [example._replace(page=len(pages)) for example in page.examples]
            pages.append((page.title, page.page_id))
    with write_atomically(folder / f"{name}.npz") as temporary, temporary.open("wb") as file:
        np.savez(file, **make_block(examples))  # type: ignore[arg-type]
    return {"counts": dict(counts), "pages": pages}


@lru_cache(maxsize=1)
def _load(folder: Path) -> tuple[PieceTokenizer, EntityVocab]:
    texts: list[str] = [(folder / f"{name}.txt").read_text(encoding="utf8") for name in ("tokenizer", "vocab")]
    return PieceTokenizer.from_json(texts[0]), EntityVocab.from_json(texts[1])

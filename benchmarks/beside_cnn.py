"""Small `luke_ner` pipelines beside spaCy's CNN `ner`: F1 of each, and words a second in every number format, in a run.

    python benchmarks/distillation.py --seed 0 --folder distilled/0
    python benchmarks/beside_cnn.py distilled/0 --seed 0    # lines of results/beside_cnn.jsonl
    python benchmarks/beside_cnn.py --report                # results/beside_cnn.md from these

The CNN is what `spacy init config --pipeline ner --optimize efficiency` says and learns from the same gold documents,
until its F1 on development documents no longer grows (spaCy's patience). F1 on all test documents, words and
sentences given; words a second in turns, in one process of one thread, all on the same Docs.
"""

import argparse
import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from distillation import mean_of, measure_all
from machine import describe_machine, instructions
from measuring import RESULTS
from paired import answers_of_ents, compare_lines, keep
from runs import add_line, read_lines

CNN = "spaCy's CNN `ner`"
KINDS = {"teacher": "luke_ner, on gold", "gold": "luke_ner, on gold", "taught": "luke_ner, taught"}
FORMATS = ("float32", "bfloat16", "int8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?", help="of distillation.py: its data and pipelines")
    parser.add_argument("--seed", type=int, default=0, help="of the CNN, and that the folder was made with")
    parser.add_argument("--name", default="beside_cnn", help="of the results: those of another chip have their own")
    parser.add_argument("--report", action="store_true", help="only write the report again")
    options = parser.parse_args()
    if not options.report:
        if options.folder is None:
            parser.error("name the folder that distillation.py wrote, or give --report")
        logging.disable(logging.WARNING)
        warnings.simplefilter("ignore")
        for row in measure(options.folder, options.seed):
            add_line(RESULTS / f"{options.name}.jsonl", row)
    text = make_report(read_lines(RESULTS / f"{options.name}.jsonl"))
    (RESULTS / f"{options.name}.md").write_text(text, encoding="utf8")
    print(text)


def measure(folder: Path, seed: int) -> Iterator[dict[str, Any]]:
    import torch

    torch.set_num_threads(1)
    described, pipelines = zip(*load_all(folder, seed), strict=True)
    tests, scores, speeds = measure_all(pipelines, folder)
    machine = {**describe_machine(), "instructions": ", ".join(instructions())}
    for told, f, test, speed in zip(described, scores, tests, speeds.words_per_second, strict=True):
        name = "cnn" if told["system"] == CNN else f"{told['system'].split()[-1]}{told['layers']}-{told['format']}"
        answers = answers_of_ents(test)
        told["predictions"] = keep(f"beside_cnn/{name}-{seed}.jsonl", answers)
        told["beside_cnn"] = speed / speeds.words_per_second[0]
        yield {**told, "seed": seed, "f": f, "words_per_second": speed, "core": speeds.core, **machine}


def load_all(folder: Path, seed: int) -> Iterator[tuple[dict[str, Any], Any]]:
    """The CNN, and each pipeline of the folder in each number format."""
    import spacy

    from spacy_luke.pipelines.quantization import quantize

    yield {"system": CNN, "layers": None, "format": "float32"}, spacy.load(train_cnn(folder, seed))
    for kind in KINDS:
        for path in sorted(folder.glob(f"{kind}*/model-last"), key=lambda x: -layers_of(x)):
            for name in FORMATS:
                nlp: Any = spacy.load(path)
                if name == "int8":
                    quantize(nlp)
                else:
                    nlp.get_pipe("luke_ner").encoder_node.attrs["predict_precision"] = name
                yield {"system": KINDS[kind], "layers": layers_of(path), "format": name}, nlp


def layers_of(path: Path) -> int:
    (digits,) = re.findall(r"\d+$", path.parent.name)
    return int(digits)


def train_cnn(folder: Path, seed: int) -> Path:
    """Folder of the CNN, which is trained unless it is there."""
    from spacy.cli.init_config import init_config
    from spacy.training.initialize import init_nlp
    from spacy.training.loop import train

    output = folder / "cnn"
    if not (output / "model-best").exists():
        config = init_config(lang="en", pipeline=["ner"], optimize="efficiency")
        config["paths"].update(train=str(folder / "gold.spacy"), dev=str(folder / "dev.spacy"))
        config["system"]["seed"] = config["training"]["seed"] = seed
        output.mkdir(exist_ok=True)
        train(init_nlp(config), output)
    return output / "model-best"


def make_report(rows: Sequence[dict[str, Any]]) -> str:
    """The mean of the seeds; of what was measured again, the last."""
    kept = {(x["system"], x["layers"], x["format"], x["seed"]): x for x in rows}.values()
    seeds = ", ".join(map(str, sorted({x["seed"] for x in kept})))
    chips = "; ".join(sorted({f"{x['chip']} with {x['instructions']}" for x in kept}))
    lines = [
        "# Small pipelines beside spaCy's CNN `ner`",
        "",
        "Written by `python benchmarks/beside_cnn.py`: pipelines of `benchmarks/distillation.py`, and the CNN, on the "
        "same CoNLL-2003",
        "gold; what is taught learns from other documents too, of which a teacher of six layers says what it "
        "thinks. F1: mean over",
        f"the seeds ({seeds}); above the CNN: the same seeds, with the 95 % interval over documents and seeds. Words a "
        "second: in turns,",
        "in one process of one thread, on the same Docs; where `of a core` is below 1, the machine had other work "
        f"beside it. {chips}.",
        "",
        "| system | layers | format | seeds | F1 | above the CNN | words a second | of the CNN's | lowest, highest | "
        "of a core |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    systems = {(x["system"], x["layers"], x["format"]) for x in kept}
    for key in sorted(systems, key=lambda x: (x[0] != CNN, x[0], -(x[1] or 0), FORMATS.index(x[2]))):
        own = [x for x in kept if (x["system"], x["layers"], x["format"]) == key]
        f, speed, beside, core = (mean_of(own, name) for name in ("f", "words_per_second", "beside_cnn", "core"))
        gap = compare_lines([x for x in kept if x["system"] == CNN], own)
        spread = f"{min(x['beside_cnn'] for x in own):.2f}, {max(x['beside_cnn'] for x in own):.2f}"
        cells = [key[0], str(key[1] or ""), key[2], str(len(own)), f"{f:.2f}", str(gap) if gap and key[1] else ""]
        cells += [f"{speed:,.0f}", f"{beside:.2f}", spread if key[1] else "", f"{core:.2f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()

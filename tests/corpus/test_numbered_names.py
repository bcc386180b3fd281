"""Vocabularies of names that are numbers: against a plain computation with dictionaries, and in how much memory."""

import tracemalloc
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spacy_luke.corpus import vocabulary
from spacy_luke.corpus.numbered_names import NumberedNames, group_names, line_to_name, name_to_line
from spacy_luke.entity_vocab import SPECIAL, entity_name
from spacy_luke.stores.parallel import Engine
from spacy_luke.stores.sorting import SortedSums

TITLES = [*"ABCDE", "a\tb", "a\\", "a\\tb", "a\x01", "a\x0b", "a\x0c", "[MASK]", " ", "a\nb", "Ä"]
LANGUAGES = ["de", "de-at", "en"]

titles = st.sampled_from(TITLES)
parts = st.lists(st.tuples(st.dictionaries(titles, st.integers(1, 4), max_size=6), st.lists(titles, max_size=4)))
names = st.tuples(st.sampled_from([*LANGUAGES, "fr"]), titles)


def plain(found, pages, groups, *, white_list, white_list_only, min_count, min_languages, size, multilingual):
    """Rows (links, names), and counts; found: links by name."""
    counts = Counter(links=found.total(), titles=len(found))
    for name in [x for x in found if x[1] in SPECIAL or not x[1].strip()]:
        counts["links to titles of special entities, left out"] += found.pop(name)
    joined = [{name} for name in found]
    for group in groups:
        touched = [x for x in joined if x & set(group)]
        joined = [*(x for x in joined if x not in touched), set(group).union(*touched)]
    merged = []
    for group in joined:
        known = sorted((x for x in group if x in found and (pages is None or x in pages)), key=lambda x: (-found[x], x))
        if known:
            merged.append((sum(found[x] for x in known), known))
            counts["titles joined with others over interwiki links"] += len(known) - 1
    if pages is not None and (missing := len(found) - sum(len(x) for _, x in merged)):
        counts["titles without a page, left out"] = missing
    kept = []
    by_title = {entity_name(title, lang if multilingual else None): x for x in merged for lang, title in x[1]}
    if wanted := list(dict.fromkeys(white_list)):
        counts["titles of the white list without a link"] = sum(x not in by_title for x in wanted)
    for x in wanted:
        if x in by_title and by_title[x] not in kept:
            kept.append(by_title[x])
    listed = list(kept)
    for row in sorted(merged, key=lambda x: (-x[0], x[1])) if not white_list_only else ():
        if row in listed:
            continue
        if row[0] < min_count:
            counts["entities below min_count, left out"] += 1
        elif len({language for language, _ in row[1]}) < min_languages:
            counts["entities of too few languages, left out"] += 1
        elif len(kept) + 3 >= size:
            counts["entities beyond size, left out"] += 1
        else:
            kept.append(row)
    return kept, counts


@given(
    counted=st.lists(parts, min_size=1, max_size=3),
    groups=st.lists(st.lists(names, min_size=1, max_size=4, unique=True), max_size=6),
    settings=st.fixed_dictionaries(
        {
            "size": st.integers(4, 12),
            "min_count": st.integers(0, 4),
            "min_languages": st.integers(1, 2),
            "white_list": st.lists(st.one_of(titles, titles.map("en:{}".format)), max_size=4),
            "white_list_only": st.booleans(),
        }
    ),
    pages_only=st.booleans(),
)
def test_rows_are_those_of_a_plain_computation(counted, groups, settings, pages_only):
    multilingual = len(counted) > 1
    languages = LANGUAGES[: len(counted)] if multilingual else [""]
    if not multilingual:
        settings = {**settings, "min_languages": 1}
    corpora = [
        SimpleNamespace(
            path=Path(x), parts=own, language=x, interwiki=Path("x") if i == 0 else None, moved=lambda titles: {}
        )
        for i, (x, own) in enumerate(zip(languages, counted))
    ]
    found, pages = Counter(), set()
    for language, own in zip(languages, counted):
        for links, with_page in own:
            found.update({(language, title): count for title, count in links.items()})
            pages.update((language, title) for title in with_page)
    known = [[x for x in group if x[0] in languages] for group in groups] if multilingual else []
    rows, counts = plain(found, pages if pages_only else None, known, **settings, multilingual=multilingual)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vocabulary, "count_part", lambda part: part)
        patch.setattr(vocabulary, "read_interwiki", lambda path, *, progress: iter(groups))
        patch.setattr(vocabulary, "SortedSums", lambda folder: SortedSums(folder, most=3))
        build = lambda: vocabulary.build_entity_vocab(  # noqa: E731
            corpora, **settings, pages_only=pages_only, engine=Engine(workers=1)
        )
        if not rows:
            with pytest.raises(ValueError, match="none is left"):
                build()
            return
        built = build()
    assert [(row.links, row.names) for row in built.rows[3:]] == rows
    expected = {**counts, "entities": len(rows), "links to them": sum(links for links, _ in rows)}
    assert {k: v for k, v in built.counts.items() if v} == {k: v for k, v in expected.items() if v}


@given(names)
def test_names_are_lines_and_back(name):
    key = name_to_line(name)
    assert key.count("\t") == 1
    assert "\n" not in key
    assert line_to_name(key) == name


@given(names, names)
def test_lines_are_in_the_order_of_names(one, other):
    assert (name_to_line(one) < name_to_line(other)) == (one < other)


@pytest.mark.slow
def test_a_title_costs_some_bytes(tmp_path):
    """200,000 names of 40 characters, of which 10,000 at once are texts in memory; as texts all would take 25 MB."""
    tracemalloc.start()
    try:
        sums = SortedSums(tmp_path / "sums", most=10_000)
        for i in range(200_000):
            sums.add(name_to_line(("en", f"{i * 7919 % 200_000:040d}")), 1 + i % 5)
        found = NumberedNames(sums, tmp_path / "names")
        pairs = ([("en", f"{i:040d}"), ("en", f"{i + 1:040d}")] for i in range(0, 20_000, 2))
        groups = group_names(found, pairs, tmp_path / "groups")
        assert tracemalloc.get_traced_memory()[1] < 16_000_000
    finally:
        tracemalloc.stop()
    assert len(found) == 200_000
    assert np.array_equal(groups[:20_000], np.arange(20_000) // 2 * 2)
    assert np.array_equal(groups[20_000:], np.arange(20_000, 200_000))

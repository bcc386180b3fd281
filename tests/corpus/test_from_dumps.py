"""From dumps to linked corpora: the sample, bad input, and builds that are stopped, repeated or spread over
processes."""

import bz2
import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from spacy_luke.corpus import from_dumps
from spacy_luke.corpus.from_dumps import build_from_dumps
from spacy_luke.corpus.linked_corpus import LinkedCorpus, read_linked_part
from spacy_luke.stores.parallel import Engine

SAMPLE = Path(__file__).parents[2] / "assets" / "wiki.xml"
HERE = Engine(workers=1)


def page(title, text, *, redirect=None, ns=0):
    lead = f'<redirect title="{redirect}"/>' if redirect else ""
    return f"<page><title>{title}</title><ns>{ns}</ns>{lead}<revision><text>{text}</text></revision></page>"


@pytest.fixture
def dump(tmp_path):
    def make(*pages, name="dump.xml"):
        path = tmp_path / name
        path.write_text(f'<mediawiki xml:lang="xx">{"".join(pages)}</mediawiki>', encoding="utf8")
        return path

    return make


def contents(folder):
    return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def shown(corpus):
    return [
        (x.page, x.text, [(x.text[start:end], title) for start, end, title in x.links]) for x in corpus.paragraphs()
    ]


def test_the_sample(tmp_path):
    corpus = build_from_dumps([SAMPLE], tmp_path / "corpus", engine=HERE)
    assert corpus.language == "en"
    assert corpus.manifest["counts"] == {
        "links": 30,
        "links into redirect loops, left out": 1,
        "links over redirects": 3,
        "links over redirects to redirects": 1,
        "links to other languages": 4,
        "links to the page itself": 3,
        "pages": 5,
        "pages of other namespaces": 1,
        "pages without text": 1,
        "paragraphs": 12,
        "redirects": 5,
    }
    found = shown(corpus)
    assert found[5] == (
        "Vellmouth",
        "Old Vellmouth, Vellmuth and The Ring",
        [("Old Vellmouth", "Vellmouth"), ("Vellmuth", "Vellmouth")],
    )
    assert ("harbourmasters", "Harbourmaster") in found[2][2]
    assert [x.lead for x in corpus.paragraphs()][:3] == [True, False, False]
    moved = corpus.moved(["Vellmuth", "Vellmouth", "Nowhere"])
    assert moved == {"Vellmuth": "Vellmouth"}
    assert corpus.interwiki.read_text(encoding="utf8").splitlines()[0] == "en\tVellmouth\tde\tVellmünde"
    assert not list(tmp_path.glob(".corpus*")), "no work is left"


def test_the_same_bytes_from_one_process_and_two_and_packed(tmp_path):
    packed = tmp_path / "streams.xml.bz2"
    data = SAMPLE.read_bytes()
    packed.write_bytes(b"".join(bz2.compress(data[i : i + 1000]) for i in range(0, len(data), 1000)))
    one = build_from_dumps([SAMPLE], tmp_path / "one", part_chars=900, engine=HERE)
    two = build_from_dumps([SAMPLE], tmp_path / "two", part_chars=900, engine=Engine(workers=2))
    streams = build_from_dumps([packed], tmp_path / "three", part_chars=900, engine=HERE)
    assert len(one.parts) == 3
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.digest == two.digest == streams.digest
    assert build_from_dumps([SAMPLE], tmp_path / "one", part_chars=900, engine=HERE).digest == one.digest, "again"


def test_links_of_all_kinds(dump, tmp_path):
    path = dump(
        page("A", "{{t|{{u|[[no]]|{{v}}}}}}[[a]] [[B]]s [[C#x|see]] [[D]] [[L1]] [[ns]] [[  ]] [[E| ]]"),
        page("B", "", redirect="C"),
        page("C", "#redirect [[D]]"),
        page("D", "", redirect="Missing"),
        page("L1", "", redirect="L2"),
        page("L2", "", redirect="L3"),
        page("L3", "", redirect="L1"),
        page("Self", "", redirect="Self"),
        page("Ns", "", redirect="Category:X"),
        page("Nothing", ""),
        page("Only a template", "{{x|[[A]]}}\n\n"),
        page("Talk:A", "[[A]]", ns=1),
    )
    corpus = build_from_dumps([path], tmp_path / "corpus", engine=HERE)
    links = [("a", "A"), ("Bs", "Missing"), ("see", "Missing"), ("D", "Missing"), ("E", "E")]
    assert shown(corpus) == [("A", "a Bs see D L1 ns  E", links)]
    counts = {name: count for name, count in corpus.manifest["counts"].items() if count}
    assert counts == {
        "links": 5,
        "links into redirect loops, left out": 1,
        "links over redirects": 1,
        "links over redirects to no article, left out": 1,
        "links over redirects to redirects": 2,
        "links to the page itself": 1,
        "pages": 3,
        "pages of other namespaces": 1,
        "pages without text": 2,
        "paragraphs": 1,
        "redirects": 8,
    }


def test_redirects_hold_for_all_parts_of_a_dump(dump, tmp_path):
    first = dump(page("A", "[[b]]"), name="1.xml")
    second = dump(page("B", "", redirect="C"), page("D", "[[B]] [[A]]"), name="2.xml")
    corpus = build_from_dumps([first, second], tmp_path / "corpus", engine=HERE)
    assert shown(corpus) == [("A", "b", [("b", "C")]), ("D", "B A", [("B", "C"), ("A", "A")])]
    assert len(corpus.parts) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda data: bz2.compress(data)[:-30], r"dump\.xml is not a whole bzip2 file .*truncated"),
        (lambda data: bz2.compress(data)[:60] + b"\0" * 90, r"dump\.xml is not a whole bzip2 file"),
        (lambda data: data[:-20], r"dump\.xml is not XML .*truncated"),
        (lambda data: b"<html></html>", "no dump of a wiki"),
        (lambda data: b"<mediawiki></mediawiki>", r"Expected articles in .*dump\.xml"),
        (lambda data: data.replace(b"[[a]]", b"{{a}}"), r"Expected text in dump\.xml, but there is none"),
    ],
)
def test_nothing_is_written_from_bad_dumps(dump, tmp_path, change, message):
    path = dump(page("A", "[[a]]"))
    good = build_from_dumps([path], tmp_path / "corpus", engine=HERE)
    before = contents(tmp_path / "corpus")
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=message):
        build_from_dumps([path], tmp_path / "corpus", engine=HERE)
    with pytest.raises(ValueError, match=message):
        build_from_dumps([path], tmp_path / "new", engine=HERE)
    assert not (tmp_path / "new").exists()
    assert contents(tmp_path / "corpus") == before
    assert LinkedCorpus.open(tmp_path / "corpus", verify=True).digest == good.digest


def test_no_other_folder_is_replaced(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "text.txt").write_text("x")
    with pytest.raises(ValueError, match="holds something else than a linked corpus"):
        build_from_dumps([SAMPLE], tmp_path / "mine", engine=HERE)
    with pytest.raises(ValueError, match=r"Expected a file at .*nowhere\.xml"):
        build_from_dumps([tmp_path / "nowhere.xml"], tmp_path / "new", engine=HERE)


def test_a_build_that_failed_goes_on(tmp_path, monkeypatch):
    expected = build_from_dumps([SAMPLE], tmp_path / "expected", part_chars=900, engine=HERE)
    write_part, made = from_dumps.write_part, []

    def full_disk(path, paragraphs):
        if path.name == "part-00001.jsonl.gz" and "part-00001" not in made:
            made.append("part-00001")
            raise OSError(28, "No space left on device")
        made.append(path.name)
        write_part(path, paragraphs)

    monkeypatch.setattr(from_dumps, "write_part", full_disk)
    with pytest.raises(OSError, match="No space left"):
        build_from_dumps([SAMPLE], tmp_path / "corpus", part_chars=900, engine=HERE)
    assert not (tmp_path / "corpus").exists()
    monkeypatch.setattr(from_dumps, "stage_pages", None)  # is not needed again
    corpus = build_from_dumps([SAMPLE], tmp_path / "corpus", part_chars=900, engine=HERE)
    assert made == ["part-00000.jsonl.gz", "part-00001", "part-00001.jsonl.gz", "part-00002.jsonl.gz"]
    assert contents(corpus.path) == contents(expected.path)


def test_work_for_other_settings_is_not_used(tmp_path, monkeypatch):
    monkeypatch.setattr(from_dumps, "make_part", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build_from_dumps([SAMPLE], tmp_path / "corpus", part_chars=900, engine=HERE)
    assert (tmp_path / ".corpus.work" / "stage.json").exists()
    monkeypatch.undo()
    assert len(build_from_dumps([SAMPLE], tmp_path / "corpus", engine=HERE).parts) == 1


def test_what_is_in_the_way_of_work_stays(tmp_path):
    (tmp_path / ".corpus.work").mkdir()
    (tmp_path / ".corpus.work" / "letters.txt").write_text("mine")
    with pytest.raises(ValueError, match="in the way"):
        build_from_dumps([SAMPLE], tmp_path / "corpus", engine=HERE)
    assert (tmp_path / ".corpus.work" / "letters.txt").exists()


@pytest.mark.slow
def test_memory_is_that_of_a_page(tmp_path):
    """20 MB of pages of 200 kB, in parts of 1 MB."""
    text = f"[[A]] {'x' * 200_000}"
    path = tmp_path / "big.xml"
    path.write_text(f"<mediawiki>{''.join(page(f'P{i}', text) for i in range(100))}</mediawiki>", encoding="utf8")
    tracemalloc.start()
    try:
        corpus = build_from_dumps([path], tmp_path / "corpus", part_chars=1 << 20, engine=HERE)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(corpus.parts) == 17
    assert peak < 6_000_000


KILLED = """
import os, signal, sys
from spacy_luke.corpus import from_dumps
from spacy_luke.stores.parallel import Engine
write_part = from_dumps.write_part
def killed(path, paragraphs):
    if path.name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)
    write_part(path, paragraphs)
from_dumps.write_part = killed
from_dumps.build_from_dumps([sys.argv[1]], sys.argv[2], part_chars=900, engine=Engine(workers=1))
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_a_build_that_was_killed_goes_on(tmp_path):
    expected = build_from_dumps([SAMPLE], tmp_path / "expected", part_chars=900, engine=HERE)
    command = [sys.executable, "-c", KILLED, str(SAMPLE), str(tmp_path / "corpus"), "part-00002.jsonl.gz"]
    assert subprocess.run(command).returncode == -signal.SIGKILL
    assert not (tmp_path / "corpus").exists()
    finished = tmp_path / ".corpus.work" / "part-00001.jsonl.gz"
    before = finished.stat().st_mtime_ns, finished.stat().st_ino
    corpus = build_from_dumps([SAMPLE], tmp_path / "corpus", part_chars=900, engine=HERE)
    assert contents(corpus.path) == contents(expected.path)
    kept = corpus.path / "part-00001.jsonl.gz"
    assert (kept.stat().st_mtime_ns, kept.stat().st_ino) == before, "the finished part was made before"


def test_parts_are_whole_paragraphs(tmp_path):
    corpus = build_from_dumps([SAMPLE], tmp_path / "corpus", part_chars=1, engine=HERE)
    parts = [{paragraph.page for paragraph in read_linked_part(part)} for part in corpus.parts]
    assert parts == [{"Vellmouth"}, {"Ada Thorne"}, {"Vellmouth lighthouse"}, {"Ister Water"}, set()]

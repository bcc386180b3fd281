import json
import tarfile

import pytest

from spacy_luke.entity_vocab import EntityVocab
from tests.counting import count_calls

LUKE = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "Paris": 3, "Ada Lovelace": 4, "[MASK2]": 5}
LITE = {"[MASK]": 0, "[UNK]": 1, "[PAD]": 2, "[MASK2]": 3}
MULTI = [
    {"id": 0, "entities": [["[PAD]", "en"], ["[PAD]", "ja"]], "count": 0},
    {"id": 1, "entities": [["[UNK]", "en"], ["[UNK]", "ja"]], "count": 0},
    {"id": 2, "entities": [["[MASK]", "en"], ["[MASK]", "ja"]], "count": 0},
    {"id": 3, "entities": [["Japan", "en"], ["日本", "ja"]], "count": 9},
    {"id": 4, "entities": [["Star Trek: Discovery", "en"]], "count": 8},
]


def write(path, text):
    path.write_bytes(text.encode("utf8"))
    return path


def jsonl(items):
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def test_json(tmp_path):
    vocab = EntityVocab.from_file(write(tmp_path / "entity_vocab.json", json.dumps(LUKE)))
    assert len(vocab) == 6
    assert (vocab.row("[PAD]"), vocab.unk_row, vocab.mask_row, vocab.row("[MASK2]")) == (0, 1, 2, 5)
    assert vocab.special_rows() == {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "[MASK2]": 5}
    assert (vocab.row("Paris"), vocab.row("paris"), vocab.row("Paris", language="en")) == (3, None, None)
    assert vocab.titles() == ["[PAD]", "[UNK]", "[MASK]", "Paris", "Ada Lovelace", "[MASK2]"]
    assert vocab.counts is None


def test_lite(tmp_path):
    vocab = EntityVocab.from_file(write(tmp_path / "entity_vocab.json", json.dumps(LITE)))
    assert (vocab.mask_row, vocab.row("[PAD]"), len(vocab)) == (0, 2, 4)


def test_languages(tmp_path):
    vocab = EntityVocab.from_file(write(tmp_path / "entity_vocab.jsonl", jsonl(MULTI)))
    assert (vocab.row("Japan"), vocab.row("Japan", language="en"), vocab.row("日本", language="ja")) == (None, 3, 3)
    assert vocab.row("[MASK]") == vocab.row("[MASK]", language="ja") == vocab.mask_row == 2
    assert vocab.names()[3] == ("en:Japan", "ja:日本")
    assert vocab.row("Star Trek: Discovery", language="en") == 4
    assert vocab.counts == [0, 0, 0, 9, 8]
    assert vocab.row("[MASK2]") is None
    again = EntityVocab.from_json(vocab.to_json())
    assert again.to_json() == vocab.to_json()
    assert (again.names(), again.counts) == (vocab.names(), vocab.counts)


def test_special_entities_named_with_a_language(tmp_path):
    names = {"ja:[PAD]": 0, "en:[PAD]": 0, "ja:[MASK]": 1, "en:[MASK]": 1, "en:A [MASK]": 2}
    vocab = EntityVocab.from_file(write(tmp_path / "v.json", json.dumps(names)))
    assert vocab.special_rows() == {"[PAD]": 0, "[MASK]": 1}
    assert vocab.row("[MASK]") == 1


def test_tsv_titles_are_not_touched(tmp_path):
    titles = ["[PAD]", "[UNK]", "[MASK]", " blank ", "nel\u0085x", "line\u2028sep", "a\tb", "C++", '"Heroes"']
    text = "".join(f"{title}\t{n}\n" for n, title in enumerate(titles))
    vocab = EntityVocab.from_file(write(tmp_path / "entity_vocab.tsv", text))
    assert vocab.titles() == titles
    assert vocab.counts == list(range(len(titles)))
    windows = EntityVocab.from_file(write(tmp_path / "windows.tsv", text.replace("\n", "\r\n")))
    assert windows.titles() == titles


def test_a_folder_stands_for_its_file(tmp_path):
    with pytest.raises(ValueError, match=r"entity_vocab.json, entity_vocab.jsonl, entity_vocab.tsv"):
        EntityVocab.from_file(tmp_path)
    write(tmp_path / "entity_vocab.tsv", "[MASK]\t0\na\nb\t1\n")  # as older versions wrote titles with line breaks
    write(tmp_path / "entity_vocab.jsonl", jsonl(MULTI))
    assert len(EntityVocab.from_file(tmp_path)) == len(MULTI)
    write(tmp_path / "entity_vocab.json", json.dumps(LITE))
    assert EntityVocab.from_file(tmp_path).mask_row == 0


def test_restricted_and_with_entity():
    vocab = EntityVocab(LUKE.items(), counts=[0, 0, 0, 7, 5, 0])
    lite = vocab.restricted([2, 1, 0, 5])
    assert lite.titles() == ["[MASK]", "[UNK]", "[PAD]", "[MASK2]"]
    assert (lite.mask_row, lite.row("[PAD]"), len(lite), lite.counts) == (0, 2, 4, [0, 0, 0, 0])
    more = lite.with_entity("Paris")
    assert (more.row("Paris"), len(more), more.counts, len(lite)) == (4, 5, [0] * 5, 4)
    assert more.with_entity("Paris", language="fr").row("Paris", language="fr") == 5
    with pytest.raises(ValueError, match="'Paris' is row 4"):
        more.with_entity("Paris")
    with pytest.raises(ValueError, match="6 entities, but got 6"):
        vocab.restricted([2, 6])
    with pytest.raises(ValueError, match="each row once"):
        vocab.restricted([2, 2])
    with pytest.raises(ValueError, match=r"\[MASK\]"):
        vocab.restricted([0, 1])


def test_rows_without_a_name_stay():
    vocab = EntityVocab([("[MASK]", 0), ("x", 3)])
    assert (len(vocab), vocab.titles()) == (4, ["[MASK]", None, None, "x"])
    assert EntityVocab.from_json(vocab.to_json()).titles() == vocab.titles()


def test_save_huggingface(tmp_path):
    vocab = EntityVocab(LUKE.items())
    path = vocab.save_huggingface(tmp_path)
    assert json.loads(path.read_text()) == LUKE
    assert EntityVocab.from_file(path).to_json() == vocab.to_json()
    multi = EntityVocab.from_file(write(tmp_path / "x.jsonl", jsonl(MULTI)))
    saved = json.loads(multi.save_huggingface(tmp_path).read_text(encoding="utf8"))
    assert saved == {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2, "en:Japan": 3, "ja:日本": 3, "en:Star Trek: Discovery": 4}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("v.json", "{", "v.json: "),
        ("v.json", "[1]", "names to rows"),
        ("v.json", '{"a": "b"}', "row number for 'a', but got 'b'"),
        ("v.json", '{"[MASK]": 0, "a": 1, "a": 2}', "'a' has the rows 1 and 2"),
        ("v.json", '{"[MASK]": 0, "a": -1}', "'a' has the row -1"),
        ("v.json", '{"Paris": 0}', r"\[MASK\] in the vocabulary of 1 rows"),
        ("v.json", "{}", "vocabulary of 0 rows"),
        ("v.json", '{"[MASK]": 0, "a": 900000000000}', "leave most of 900000000001 rows"),
        ("v.tsv", "[MASK]\t0\nParis\n", "line 2, but got 'Paris'"),
        ("v.tsv", "[MASK]\t0\n\nParis\t1\n", "line 2, but got ''"),
        ("v.jsonl", '{"id": 0, "entities": [["[MASK]", null]]}\n{"id": 1}\n', "line 2"),
        ("v.jsonl", '{"id": 0, "entities": [["[MASK]", null]]}\n{"id": "1", "entities": []}\n', "line 2"),
        ("v.jsonl", '{"id": 0, "entities": [["[MASK]", null]]}\n{"id": 0, "entities": []}\n', "id 0 again"),
        ("v.jsonl", '{"id": 0, "entities": ["ab"]}', "line 1, .*'ab' is no list of a title and its language"),
        ("v.jsonl", '{"id": 0, "entities": [["a", "en", 1]]}', "line 1, .* is no list of a title and its language"),
        ("v.jsonl", '{"id": 0, "entities": [[5, 6]]}', "line 1, .* is no title and a language or null"),
        ("v.jsonl", '{"id": 0, "entities": [["a", 6]]}', "line 1, .* is no title and a language or null"),
        ("v.jsonl", '{"id": 0, "entities": [], "count": "x"}', "the count 'x' is no whole number"),
        ("v.jsonl", '{"id": 0.0, "entities": []}', "the id 0.0 or the count 0 is no whole number"),
        ("v.txt", "", "v.txt"),
    ],
)
def test_errors(tmp_path, name, text, message):
    with pytest.raises(ValueError, match=message):
        EntityVocab.from_file(write(tmp_path / name, text))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("entity_vocab.json", '{"[PAD]": 0, "[MASK]": 1}'),
        ("entity_vocab.tsv", "[PAD]\t0\n[MASK]\t0\n"),
        ("entity_vocab.jsonl", jsonl({"id": i, "entities": [[x, None]]} for i, x in enumerate(["[PAD]", "[MASK]"]))),
    ],
)
def test_a_byte_order_mark_is_no_part_of_a_title(tmp_path, name, text):
    vocab = EntityVocab.from_file(write(tmp_path / name, f"\ufeff{text}"))
    assert vocab.titles() == ["[PAD]", "[MASK]"]
    assert vocab.special_rows() == {"[PAD]": 0, "[MASK]": 1}


def test_errors_of_bytes_and_versions(tmp_path):
    (tmp_path / "v.json").write_bytes(b'{"\xff": 0}')
    with pytest.raises(ValueError, match="UTF-8"):
        EntityVocab.from_file(tmp_path / "v.json")
    (tmp_path / "v.tsv").write_bytes(b"[MASK]\t0\n\xff\t0\n")
    with pytest.raises(ValueError, match=r"v.tsv, line 2: expected UTF-8"):
        EntityVocab.from_file(tmp_path / "v.tsv")
    with pytest.raises(ValueError, match="version 1, but got version 2"):
        EntityVocab.from_json('{"version": 2}')
    with pytest.raises(ValueError, match="count for each of 1 rows, but got 2"):
        EntityVocab([("[MASK]", 0)], counts=[1, 2])


def numbered(folder, size):
    names = {"[PAD]": 0, "[UNK]": 1, "[MASK]": 2}
    names.update({f"Entity number {n}": n for n in range(3, size)})
    return write(folder / "entity_vocab.json", json.dumps(names))


def test_loading_is_linear_in_the_rows(tmp_path):
    one, four = (count_calls(EntityVocab.from_file, numbered(tmp_path, size)) for size in (2000, 8000))
    assert one > 2000, "a row costs some call"
    assert four < 4.1 * one


@pytest.mark.slow
def test_half_a_million_rows(tmp_path):
    vocab = EntityVocab.from_file(numbered(tmp_path, 500_000))
    assert (len(vocab), vocab.row("Entity number 499999")) == (500_000, 499_999)


@pytest.mark.parametrize(
    "archive", ["luke_archive_tsv.tar.gz", "luke_archive_jsonl.tar.gz", "luke_archive_multilingual.tar.gz"]
)
def test_golden_archives(shared, tmp_path, archive):
    check = json.loads(shared("golden/luke_archives.json").read_text(encoding="utf8"))["archives"][archive]
    with tarfile.open(shared(f"golden/{archive}")) as file:
        file.extract(check["entity_vocab"], tmp_path, filter="data")
    vocab, expected = EntityVocab.from_file(tmp_path), check["vocab_check"]
    beyonce = vocab.row("Beyoncé", language="en" if expected["japan_en"] is not None else None)
    assert {
        "size": len(vocab),
        "japan_none": vocab.row("Japan"),
        "japan_en": vocab.row("Japan", language="en"),
        "unknown": vocab.row("unknown"),
        "special": vocab.special_rows(),
        "count_of_beyonce": vocab.counts[beyonce],
    } == expected


@pytest.mark.parametrize("name", ["hf_luke_tokenizer", "hf_luke_tokenizer_lite", "luke_ed_checkpoint"])
def test_golden_folders(shared, name):
    folder = shared(f"golden/{name}")
    if (folder / "entity_vocab.json").exists():
        expected = json.loads((folder / "entity_vocab.json").read_text("utf8"))
    else:
        lines = (folder / "entity_vocab.jsonl").read_text("utf8").splitlines()
        expected = {title: item["id"] for item in map(json.loads, lines) for title, _ in item["entities"]}
    vocab = EntityVocab.from_file(folder)
    assert len(vocab) == len(expected)
    assert vocab.mask_row == expected["[MASK]"]
    assert vocab.titles() == sorted(expected, key=expected.get)


def test_real_fixture(shared):
    vocab = EntityVocab.from_file(shared("data/luke_fixtures/fixtures/enwiki_20181220_entvocab_100.tsv"))
    assert (vocab.mask_row, vocab.row("United States")) == (2, 4)
    assert vocab.counts[3] > vocab.counts[50] > 0

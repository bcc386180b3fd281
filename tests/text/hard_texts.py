"""Texts that tokenizers get wrong, and a hypothesis strategy that mixes their parts."""

from hypothesis import strategies as st

HARD = [
    "Beyoncé lives in Los Angeles.",
    "They're late, I'll go; été 😀 ok, don't",
    "",
    " ",
    "  two  blanks   before  ",
    "tabs\tand\nnew\r\nlines\n\n end\n",
    "nbsp\u00a0here, thin\u2009space, ideographic\u3000space, line\u2028separator, nel\u0085x",
    "zero\u200bwidth\u200djoiner\u2060 bom\ufeff soft\u00adhyphen",
    "control \x00 \x07 \x1b[0m \x7f \x9f \x1c end",
    "e\u0301 a\u0308 ñ n\u0303 \u0301start \u0323\u0307 o\u0307\u0323 ª\u0301",
    "한글 \u1112\u1161\u11ab\u1100\u1173\u11af 조선",
    "東京は日本の首都です。ｶﾞﾊﾞ ﷽ ½ ﬁ ①",
    "שָׁלוֹם עולם مَرْحَبًا بالعالم \u202eRTL\u202c",
    "👩‍👩‍👧‍👦 🇯🇵 🏳️‍🌈 ☃️ 🤷🏽‍♀️",
    "İstanbul ΌΣΟΣ ẞ ǅ ŉ ΐ",
    "the <mask> of <s>x</s> y<pad> <unk>z <mask>\n<mask>  <ent>a<ent2> <MASK> <mas",
    "[MASK] [CLS]x [SEP] [mask] [UNK][PAD]",
    "▁under ▁ ▁▁x▁ ＜mask＞",
    "$1,234.56 (50%) — “quoted”… U.S.A.’s x@y.com http://a.b/c?d=e#f",
    "नमस्ते दुनिया สวัสดีชาวโลก ႀ ໂ ཀྵ",
    "x" * 300 + " " + "é" * 120,
    "\U0010ffff \ue000 \ufffd \U000e0041",
    "▁\U0002b820a\U0002b81d\U0002b91f\U0002b920 \U00020000x\u9fffy",
]

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "[MASK]", "[SEP]"]
PARTS = [
    *[" ", " ", " ", "  ", "\n", "\t", "\u00a0", "\u3000", "\u200b", "\u200d", "\x00", "\x1c", "\ufeff", "▁"],
    *[
        "the",
        "lives",
        "don't",
        "'s",
        "'",
        "Los",
        "1999",
        "a",
        "é",
        "e\u0301",
        "\u0301",
        "\u0327",
        "ª",
        "½",
        "ﬁ",
        "ß",
        "İ",
        "Σ",
    ],
    *["東京", "한글", "\u1112\u1161\u11ab", "ｶﾞ", "שָׁ", "नि", "😀", "👩‍👩‍👧", "🇯🇵", ".", ",", "—", "”", "$", "@"],
]
plain_texts = st.lists(st.one_of(st.sampled_from(PARTS), st.characters(exclude_categories=("Cs", "Cn")))).map("".join)
texts = st.lists(st.one_of(plain_texts, st.sampled_from(SPECIAL)), max_size=6).map("".join)

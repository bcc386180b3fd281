import pytest

from spacy_luke.text.scripts import judged_blanks


def joined(words):
    blanks = judged_blanks(words)
    return None if blanks is None else "".join(word + " " * blank for word, blank in zip(words, blanks, strict=True))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("马 云 在 杭 州 。 他 说 ： “ 你 好 ” ！", "马云在杭州。他说：“你好”！"),
        ("我 用 iPhone 15 Pro 在 2020 年 1 9 9 8 年 3 . 5 亿", "我用iPhone 15 Pro在2020年1998年3.5亿"),
        ("苹果 公司 ( Apple Inc. ) 、 OpenAI , 微软 都 发布", "苹果公司(Apple Inc.)、OpenAI,微软都发布"),
        ("東京 タワー と 佐 々 木 さん", "東京タワーと佐々木さん"),
        ("ﾍﾟｷﾝ ﾀﾜｰ", "ﾍﾟｷﾝﾀﾜｰ"),
        ("ＮＨＫ 放送", "ＮＨＫ放送"),
        ("ผม ไป กรุงเทพ ปี 2563 ( Bangkok ) กับ iPhone 15", "ผมไปกรุงเทพปี 2563 (Bangkok) กับ iPhone 15"),
        ("བོད་ ཡིག་", "བོད་ཡིག་"),
        ("မြန်မာ နိုင်ငံ", "မြန်မာနိုင်ငံ"),
        ("The city of 東 京 , Japan , is big ( very ) .", "The city of 東京, Japan, is big (very)."),
        ("대통령 李 明 博 은 서울 에", "대통령 李明博 은 서울 에"),
        ("iPhone XS Max Ultra 发 布", "iPhone XS Max Ultra 发布"),
        ("东京", "东京"),
    ],
)
def test_blanks_are_judged(words, text):
    assert joined(words.split()) == text


@pytest.mark.parametrize(
    "words",
    [
        "",
        "Hello , world",
        "대통령 은 서울 에 있다 .",
        "Tokyo ( 東京 ) is big",
        "हिन्दी भाषा",
        "Đà Nẵng",
        "NHK ラ is it",
        "\ud800 x",
    ],
)
def test_scripts_do_not_tell(words):
    assert joined(words.split()) is None

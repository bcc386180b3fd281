"""What training will take: counted and timed; no test looks at a clock."""

import pytest

from spacy_luke.quickstart import cost
from spacy_luke.quickstart.cost import Cost, estimate, in_words, is_here


@pytest.mark.parametrize(
    ("seconds", "expected"), [(0.2, "1 seconds"), (89, "89 seconds"), (600, "10 minutes"), (9000, "2.5 hours")]
)
def test_in_words(seconds, expected):
    assert in_words(seconds) == expected


def test_an_estimate_says_so(monkeypatch):
    monkeypatch.setattr(cost, "_flops", lambda: 1e11)
    small, large = (estimate(name, 100_000, 3) for name in ("small", "large"))
    assert large.seconds == pytest.approx(small.seconds * 303 / 11)
    assert "an estimate" in str(small)
    assert "616 steps, by 5 that were timed" in str(Cost(600.0, 616, 5))


def test_where_an_encoder_is(tmp_path):
    assert is_here(str(tmp_path))
    assert not is_here("studio-ousia/luke-base")
    assert not is_here("package:no_such_package/model")
    assert is_here("package:spacy_luke/kb")

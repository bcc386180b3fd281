"""MPNet's biases: T5's buckets, and means over the pieces of mentions at every distance."""

import pytest
import torch

from spacy_luke.model.mpnet import BUCKETS, RelativeBiases, bucket_of, relate_by
from spacy_luke.model.places import Spots

FARTHEST = 512


def test_buckets_are_those_of_transformers():
    modeling = pytest.importorskip("transformers.models.mpnet.modeling_mpnet")
    distances = torch.arange(-600, 601)
    wanted = modeling.MPNetEncoder.relative_position_bucket(distances, num_buckets=BUCKETS)
    assert torch.equal(bucket_of(distances), wanted)
    assert len(wanted.unique()) == BUCKETS - 1  # bucket 16 is that of distance 0 after, which is none


def test_means_are_exact_at_every_distance():
    """Differences of prefix sums, beside sums over all pairs of pieces; a token of one piece has the bias itself."""
    generator = torch.Generator().manual_seed(0)
    biases_XH = torch.randn(2 * FARTHEST + 1, 3, generator=generator) * 10
    relate = relate_by(biases_XH)
    ends = torch.randint(0, FARTHEST, (1, 40, 2), generator=generator).sort(-1).values
    ends[0, :5] = torch.tensor([[0, 0], [511, 511], [0, 511], [0, 1], [510, 511]])
    entities, words = Spots(*ends.unbind(-1)), torch.arange(FARTHEST)[None]
    found = {
        "entities": (relate(entities, entities), ends[0].tolist(), ends[0].tolist()),
        "to_words": (relate(entities, Spots(words, words)), ends[0].tolist(), [[i, i] for i in range(FARTHEST)][::37]),
    }
    found["to_words"] = (found["to_words"][0][..., ::37], *found["to_words"][1:])
    for got_1HSL, seeing, seen in found.values():
        for s, (a, b) in enumerate(seeing):
            for n, (c, d) in enumerate(seen):
                distances = torch.arange(c, d + 1)[None] - torch.arange(a, b + 1)[:, None] + FARTHEST
                wanted_H = biases_XH[distances].double().mean((0, 1))
                torch.testing.assert_close(got_1HSL[0, :, s, n].double(), wanted_H, atol=1e-5, rtol=1e-6)
    row = Spots(words, words)
    assert torch.equal(relate(row, row)[0, :, 7, 9], biases_XH[FARTHEST + 2])


def test_a_bias_is_learned_from_words_and_entities():
    biases = RelativeBiases(2)
    places = biases.find_places(torch.arange(6), None, farthest=8)
    assert biases.weight.shape == (BUCKETS, 2)
    entity, word = Spots(torch.tensor([[1]]), torch.tensor([[2]])), Spots(*[torch.tensor([[4]])] * 2)
    places.relate(entity, word).sum().backward()
    share = biases.weight.grad[:, 0]
    assert share[16 + 3] == share[16 + 2] == 0.5  # distances 3 and 2, of its two pieces
    assert share.sum() == 1

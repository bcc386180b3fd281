"""The table of plain encoders that LUKE's entities can be given to: what config.json says, and how the folder is read.
The encoders themselves are in `model/families.py`."""

from .configs import plain_config
from .deberta import DEBERTA
from .distilbert import DISTILBERT
from .electra import ELECTRA
from .modernbert import MODERNBERT
from .mpnet import MPNET
from .names import BERT_LM_HEAD, LAYER, LM_HEAD, POOLER, WORDS
from .plain_family import PlainFamily

BERT = PlainFamily(
    roots=("roberta.", "bert.", ""),
    config=plain_config,
    names=WORDS + LAYER + POOLER,
    heads=LM_HEAD + BERT_LM_HEAD,
)
# By the model_type of config.json.
PLAIN = {
    "roberta": BERT,
    "xlm-roberta": BERT,
    "bert": BERT,
    "mpnet": MPNET,
    "electra": ELECTRA,
    "distilbert": DISTILBERT,
    "deberta-v2": DEBERTA,
    "modernbert": MODERNBERT,
}


def family_of(name: str) -> PlainFamily:
    """By the family of a config (`LukeConfig.family`), which is a model_type too, but for LUKE's own."""
    return PLAIN.get(name, BERT)

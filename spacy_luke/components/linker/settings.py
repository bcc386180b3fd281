"""The settings of `luke_linker`."""

from ...annotations import CHOICES
from ...batch.linking import WINDOW_SPLITS
from ..factories import Configured, Function, Scorer, Setting
from ..mentions import MentionGetter
from ..window_limits import LEAST_WINDOW
from .decisions import INFERENCE
from .inputs import OTHER_MENTIONS


class LinkerSettings(Configured):
    getter: Function[MentionGetter] = Function(
        {"@misc": "spacy-luke.doc_ents.v1"},
        "the mentions of a Doc, as for `luke_typer`; their ids go to `doc.ents`, with `span_group.v1` to its group: of "
        "what another function gives, mentions that are no entities have candidates alone",
    )
    max_candidates: Setting[int] = Setting(30, "those of a mention with the highest priors are scored", least=1)
    use_given: Setting[bool] = Setting(
        True, "whether `doc._.luke_candidates_given` takes the place of the knowledge base's candidates"
    )
    share_names: Setting[bool] = Setting(
        False,
        'whether "Lovelace" gets the candidates of "Ada Lovelace" in the same document; the knowledge base must know '
        "persons",
    )
    inference: Setting[str] = Setting(
        "global",
        'the surest mention first, and the next ones see its entity; `"local"`: all at once, faster',
        choices=INFERENCE,
    )
    sure: Setting[float | None] = Setting(
        None,
        'with `"global"`: all mentions of at least this probability are decided in one step; `null`: one a step, as in '
        "the paper",
        least=0,
        most=1,
    )
    split: Setting[str] = Setting(
        "cores",
        'of documents longer than a window: windows that overlap; as the original code: `"simple"`, equal parts, or '
        '`"per_mention"`, a window around each',
        choices=WINDOW_SPLITS,
    )
    overlap: Setting[int] = Setting(128, "least context in pieces at the ends of cores", least=1)
    max_window: Setting[int | None] = Setting(
        None,
        "pieces of a window at most, [CLS] and [SEP] included; `null`: as many as the encoder reads",
        least=LEAST_WINDOW,
        rule=f"a number of pieces, [CLS] and [SEP] included, from {LEAST_WINDOW}, or null",
    )
    max_mentions: Setting[int] = Setting(
        128, "entity tokens of a window; more are divided among several passes over it", least=1
    )
    others: Setting[str] = Setting(
        "masked",
        "what a mention's input has of the others: all are masked in one input; as in the 2019 paper each has its own, "
        'with nothing of them (`"none"`) or their likely candidates (`"pseudo"`)',
        choices=OTHER_MENTIONS,
    )
    pseudo_prior: Setting[float] = Setting(0.1, 'with `"pseudo"`: least prior of these', least=0, most=1)
    learned_mentions: Setting[int | None] = Setting(
        None,
        'with `"pseudo"` and `"none"`, whose mentions have an input each: so many of a Doc, drawn anew, are learned at '
        "a time, so that Docs count alike, not mentions; `null`: all. An Example of each mention: "
        "`spacy-luke.one_link.v1`",
        least=1,
    )
    masked_share: Setting[float] = Setting(
        0.9, "of a window's mentions in training; the others are given as their gold entities", least=0, most=1
    )
    drop_gold: Setting[float] = Setting(
        0.1,
        "with `nil` of the model: of this share of the mentions in training that have several candidates the right one "
        "is taken away, so that NIL is right",
        least=0,
        most=1,
    )
    nil_bias: Setting[float] = Setting(
        0.0,
        "with `nil` of the model: added to NIL's score in predictions; above 0 more mentions are NIL. `python -m spacy "
        "luke tune --gold-mentions` finds the best one",
    )
    overwrite: Setting[bool] = Setting(
        True, "whether mentions that have an id already get another one; `false`: they are left as they are"
    )
    labels_ignore: Setting[list[str]] = Setting(
        [], "labels of mentions that are not linked and get no id, such as dates and numbers"
    )
    explain: Setting[bool] = Setting(
        False, "whether `span._.luke_evidence` says what each candidate's score is made of"
    )
    ids: Setting[str] = Setting(
        "id",
        'of the ids that the knowledge base has of an entity, the one that `kb_id_` gets: its own, `"title"`, '
        '`"wikidata"` or `"url"`; its own where that is not known. `span._.luke_entity` has them all',
        choices=CHOICES,
    )
    threshold: Setting[float] = Setting(0.0, "least score; below it NIL", least=0, most=1)
    scorer: Function[Scorer | None] = Function(
        {"@scorers": "spacy-luke.linking_scorer.v1"},
        "in-KB accuracy, micro and macro; end to end; how often the gold entity is a candidate",
    )

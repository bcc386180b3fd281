"""What a pipeline is given of the gold documents: options of `spacy luke evaluate`, `quantize` and `tune`."""

import typer

GOLD_SENTENCES = typer.Option(False, "--gold-sentences", help="Give the file's words and sentence boundaries")
GOLD_ENTITIES = typer.Option(False, "--gold-entities", help="Give the file's doc.ents, in the place of a luke_ner's")
GOLD_MENTIONS = typer.Option(
    False, "--gold-mentions", help='Give the mentions that have types as doc.spans["luke_mentions"]'
)
GOLD_PAIRS = typer.Option(False, "--gold-pairs", help="Give the pairs that are to be classified")
GOLD_LINKS = typer.Option(
    False, "--gold-links", help="Give the file's doc.ents without their entities, in the place of a luke_ner's"
)

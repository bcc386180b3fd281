"""`luke_linker`, entity disambiguation: candidates, decisions, entity vectors; its knowledge bases for spaCy.

The way of a mention, from a Doc to its entity:

    component        `LukeLinker.predict` asks the getter for the mentions of a Doc, as words [start, end).
    candidates       Each mention gets its candidates with their priors, `Named`: those that were given with the Doc, or
                     those of its text in the knowledge base (`kb.knowledge_base`); of a part of a person's name those
                     of the whole name, where `share_names` is set. The best of them by prior are scored.
    entity_table     The entities of some Docs' candidates, each once, are numbered; their vectors are read together.
    inputs           The Doc's pieces are cut into windows (`batch.linking`), of which each decides some mentions and
                     sees others. A window with the candidates of its mentions is a `LinkTask`.
    decisions        `decide` makes batches of windows, which the model (`architectures.entity_linker`) scores: the
                     state of a mention's masked entity token against the vectors of its candidates. "global" inference
                     decides the surest mention, puts its entity into the window and scores the others again.
    prediction       The probabilities go back from windows to the mentions of each Doc.
    outputs          Candidates are ordered by score; the id of the best one, or NIL below the threshold, is written to
                     doc.ents or a span group, and all of them to what `span._.luke_candidates` reads (`annotations`).

In training `gold` takes the mentions whose entity is among their candidates, `inputs.training_items` makes the same
windows with some mentions masked, and `model.losses.candidate_cross_entropy` is the loss. `checkpoint_table` turns the
entity table of a checkpoint into a store of vectors and back, `stores` opens knowledge bases for configs and saves them
with the component, `settings` has the settings.

Beside the linker: `embed_entities` makes vectors of a knowledge base's entities from their descriptions, and `spacy_kb`
is a knowledge base for spaCy's own entity_linker.
"""

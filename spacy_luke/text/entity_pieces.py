"""What transformers 5 writes into the tokenizer.json of a LUKE besides pieces of words."""

from typing import Any

_ENTITIES = ("entity_unk_token", "entity_pad_token", "entity_mask_token", "entity_mask2_token")
_MARKERS = {"▁<ent>": "<ent>", "▁<ent2>": "<ent2>"}  # what it calls those of mLUKE
# Keys of tokenizer_config.json by which it finds its own files again; the entities are no part of a tokenizer.
_OWN_KEYS = (
    "backend",
    "entity_1_token",
    "entity_2_token",
    "entity_vocab",
    "is_local",
    "local_files_only",
    "model_specific_special_tokens",
)


def leave_words(data: dict[str, Any], named: dict[str, Any]) -> bool:
    """Take the special entities ([UNK], [PAD], [MASK], [MASK2]) out of the added pieces, where they come last: the word
    table has no rows for them, or rows that nothing was learned in. Pieces of the vocabulary itself stay, and so does
    all that stands before a piece that stays, as ids are places. mLUKE's markers get the names that they had.

    data: a tokenizer.json, which is changed. named: tokenizer_config.json, whose keys for entities say that it is a
    LUKE's. RETURNS: whether anything was changed.
    """
    entities = {named[key] for key in _ENTITIES if isinstance(named.get(key), str)}
    if not entities:
        return False
    added = sorted(data["added_tokens"], key=lambda piece: int(piece["id"]))
    before = [piece["content"] for piece in added]
    vocab = data["model"]["vocab"]
    words = set(vocab) if isinstance(vocab, dict) else {piece for piece, _ in vocab}
    again = {marker for marker, name in _MARKERS.items() if name in words.union(before)}
    while added and added[-1]["content"] in (entities | again) - words:
        added.pop()
    for piece in added:
        if piece["content"] not in again:
            piece["content"] = _MARKERS.get(piece["content"], piece["content"])
    data["added_tokens"] = added
    return [piece["content"] for piece in added] != before


def without_own_keys(settings: dict[str, Any]) -> dict[str, Any]:
    """tokenizer_config.json without what only transformers 5 knows; its list of extra pieces is in tokenizer.json."""
    listed = isinstance(settings.get("extra_special_tokens"), list)
    own = {*_OWN_KEYS, *(["extra_special_tokens"] if listed else [])}
    return {key: value for key, value in settings.items() if key not in own}

"""The encoder that a component listens to: it must be in the pipeline that is saved, and be the one it was saved
with."""

import sys
from typing import Any

from spacy.language import Language
from thinc.api import Model

from ..bridge.digests import check_digest
from ..bridge.wrapper import TorchShim
from ..encoders.nodes import is_linked, is_shared

SAVING = (Language.to_disk.__code__, Language.to_bytes.__code__)


def check_owner(node: Model, *, name: str) -> None:
    """Raises ValueError where a component's stand-in has no encoder, or one that is not in the pipeline being saved, as
    of a component that was sourced alone: nobody would store its weights. name: of the component."""
    if not is_shared(node):
        return
    owner = node.shims[0].owner if is_linked(node) else node.attrs["upstream"].replace("*", "luke_encoder")
    nlp = saved_pipeline()
    if is_linked(node) and (nlp is None or any(_owns(proc, node.shims[0]) for _, proc in nlp.components)):
        return
    raise ValueError(
        f"'{name}' listens to an encoder, '{owner}', that is not in the pipeline: the encoder's weights would not be "
        f"saved, "
        f"and '{name}' could not be used. Add it before '{name}' (nlp.add_pipe({owner!r}, source=..., "
        f"before={name!r})), or "
        f"give '{name}' a copy of its own in the pipeline that has both, by nlp.replace_listeners({owner!r}, {name!r}, "
        "['model.encoder'])."
    )


def check_encoder(node: Model, *, name: str) -> None:
    """Raises ValueError where a component's stand-in runs another encoder than the one that the component was saved
    with (its attribute "digest"), unless that was trained since it was loaded."""
    if not is_shared(node) or not is_linked(node):
        return
    expected = node.attrs.get("digest")
    if (found := check_digest(node.shims[0], expected)) is not None:
        raise ValueError(
            f"'{name}' was saved with another encoder than the one in '{node.shims[0].owner}' (digest {expected[:12]} "
            f"instead "
            f"of {found[:12]}), so that its predictions would be wrong. A pipeline that was saved over another one and "
            "killed meanwhile is such a mixture: save or copy the whole pipeline again (spacy_luke.save replaces "
            f"pipelines as a whole). Or source both components from one pipeline, or train '{name}' on this encoder."
        )


def saved_pipeline() -> Language | None:
    """The pipeline whose to_disk or to_bytes is under way in this thread; None where a component is saved alone. spaCy
    does not tell components, which may be in several pipelines, so that only the callers know."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_code in SAVING:
            return frame.f_locals["self"]
        frame = frame.f_back
    return None


def _owns(proc: Any, shim: TorchShim) -> bool:
    model = getattr(proc, "model", None)
    return isinstance(model, Model) and shim in model.shims

"""The encoder that a component listens to: it must be in the pipeline that is saved, and be the one it was saved
with."""

import sys
import warnings
from itertools import takewhile
from types import FrameType
from typing import Any

from spacy.language import Language
from thinc.api import Model

from ..bridge.digests import check_digest, shim_digest
from ..encoders.kind import EncoderShim
from ..encoders.nodes import EncoderModel, encoder_of, is_shared

_SAVING = (Language.to_disk.__code__, Language.to_bytes.__code__)


def check_owner(node: EncoderModel, *, name: str) -> None:
    """Raises ValueError where a component's stand-in has no encoder, or one that is not in the pipeline being saved, as
    of a component that was sourced alone: nobody would store its weights. name: of the component."""
    if not is_shared(node):
        return
    shim = encoder_of(node)
    owner = node.attrs["upstream"].replace("*", "luke_encoder") if shim.sharing is None else shim.sharing.owner
    nlp = saved_pipeline()
    if shim.sharing is not None:
        if nlp is None:
            return
        if owners := [found for found, proc in nlp.components if _owns(proc, shim)]:
            _check_name(node.attrs["upstream"], owners, name=name)
            _check_place(nlp, node, owners[0], name=name)
            return
    raise ValueError(
        f"'{name}' listens to an encoder, '{owner}', that is not in the pipeline: the encoder's weights would not be "
        f"saved, and '{name}' could not be used. Add it before '{name}' (nlp.add_pipe({owner!r}, source=..., "
        f"before={name!r})), or give '{name}' a copy of its own in the pipeline that has both, by "
        f"nlp.replace_listeners({owner!r}, {name!r}, ['model.encoder'])."
    )


def _check_name(upstream: str, owners: list[str], *, name: str) -> None:
    """ValueError where the config names an encoder that was renamed since, so that what is saved could not be loaded.
    owners: what it is called now."""
    if upstream == "*" or upstream in owners:
        return
    raise ValueError(
        f"'{name}' listens to '{upstream}', as its config says (model.encoder.upstream), but that component is called "
        f"'{owners[0]}' now: the pipeline could not be used when it is loaded. Rename it back before it is saved: "
        f"nlp.rename_pipe({owners[0]!r}, {upstream!r})."
    )


def _check_place(nlp: Language, node: EncoderModel, owner: str, *, name: str) -> None:
    """ValueError where the encoder stands behind the component, which finds it when it is loaded only if it stands
    before it. node: the component's stand-in."""
    before = takewhile(lambda proc: not _runs(proc, node), (proc for _, proc in nlp.components))
    if not any(_owns(proc, encoder_of(node)) for proc in before):
        raise ValueError(
            f"'{name}' listens to '{owner}', which stands behind it in the pipeline: it would not find its encoder "
            f"when the pipeline is loaded. Put '{owner}' before '{name}': nlp.remove_pipe({owner!r}), then "
            f"nlp.add_pipe({owner!r}, source=..., before={name!r}) of the pipeline that it comes from."
        )


def check_encoder(node: EncoderModel, *, name: str) -> None:
    """Raises ValueError where a component's stand-in runs another encoder than the one that the component was saved
    with (its attribute "digest"), unless that was trained since it was loaded."""
    expected = node.attrs.get("digest")
    if not is_shared(node) or expected is None or (shim := encoder_of(node)).sharing is None:
        return
    if (found := check_digest(shim, expected)) is not None:
        raise ValueError(
            f"'{name}' was saved with another encoder than the one in '{shim.sharing.owner}' (digest {expected[:12]} "
            f"instead of {found[:12]}), so that its predictions would be wrong. A pipeline that was saved over "
            "another one and killed meanwhile is such a mixture: save or copy the whole pipeline again "
            "(spacy_luke.save replaces pipelines as a whole). Or source both components from one pipeline, or train "
            f"'{name}' on this encoder."
        )


def warn_of_another(node: EncoderModel, encoder: EncoderShim[Any], *, name: str, owner: str) -> None:
    """Warns where a component's stand-in runs an encoder with other weights than the one that it is to run now: spaCy
    gives a component that is sourced to both pipelines, so that it changes in the one that it comes from, too. name: of
    the component; owner: what the new encoder is called."""
    now = encoder_of(node)
    if now.sharing is None or not now.ready or not encoder.ready or _equal(now, encoder):
        return
    warnings.warn(
        f"'{name}' has read another encoder, and reads '{owner}' of this pipeline from now on, also in the pipeline "
        "that it comes from, as spaCy gives it to both: it must be trained anew on this encoder, and is lost to the "
        "other pipeline. Before it is sourced, give it a copy of its own encoder there, by nlp.replace_listeners("
        f"{now.sharing.owner!r}, ..., ['model.encoder']); or source its encoder, too.",
        stacklevel=5,
    )


def _equal(one: EncoderShim[Any], other: EncoderShim[Any]) -> bool:
    """Whether they are one, or have the same weights."""
    return one is other or (one.ready and other.ready and shim_digest(one) == shim_digest(other))


def saved_pipeline() -> Language | None:
    """The pipeline whose to_disk or to_bytes is under way in this thread; None where a component is saved alone."""
    frame = _saving_frame()
    return None if frame is None else frame.f_locals["self"]


def saved_components() -> list[Any]:
    """The components of that pipeline, without those that its caller leaves out; none where there is no such
    pipeline."""
    frame = _saving_frame()
    if frame is None:
        return []
    nlp, excluded = frame.f_locals["self"], frame.f_locals["exclude"]
    return [proc for name, proc in nlp.components if name not in excluded]


def _saving_frame() -> FrameType | None:
    """spaCy does not tell components, which may be in several pipelines, which one is saved, so that only the callers
    know."""
    frame: FrameType | None = sys._getframe()
    while frame is not None and frame.f_code not in _SAVING:
        frame = frame.f_back
    return frame


def _runs(proc: Any, node: EncoderModel) -> bool:
    model = getattr(proc, "model", None)
    return isinstance(model, Model) and any(part is node for part in model.walk())


def _owns(proc: Any, shim: EncoderShim[Any]) -> bool:
    """Whether it has this encoder, or one of the same weights, as where a component was sourced from a pipeline that is
    loaded twice."""
    if not hasattr(proc, "sharing"):
        return False
    (own,) = proc.model.shims
    return _equal(own, shim)

"""How long the windows of an encoder may be, by what is known of it: what it was made for, and what training has shown
it.

Lengths are in pieces, [CLS] and [SEP] included. What training has shown is kept with the encoder's weights, as all
components that share it read the same windows.
"""

import warnings

from ..batch.windows import CONTEXTS
from ..encoders.kind import EncoderShim
from ..encoders.seen import STEP, seen_windows
from ..model.luke import Encoder
from .factories import Configured, Setting
from .storage import StoredComponent

LEAST_WINDOW = 5  # pieces of a window
_RARE = 0.05  # of the pieces seen: windows that fewer are in, these and all longer ones, have not been learned
_BEYOND = 2.0  # times what is known: after short texts windows of 130 pieces lost 0.4 points to those of 66, of 258 7.6
_OVERLAP = 32  # pieces; the same for all components, so that those that share an encoder share its windows
_LEAST = 64  # pieces of a window that is chosen by what training has shown
_UNKNOWN = "seen_elsewhere"  # key of the encoder's settings
_DECLARED = "max_seq_length"  # of sentence-transformers; in a checkpoint's source


def checked_window(encoder: EncoderShim[Encoder], chosen: int | None, *, name: str) -> int:
    """Pieces of a window, [CLS] and [SEP] included: those that the setting `max_window` of a component has chosen, or
    as many as the encoder reads. Raises ValueError, naming the component, where it cannot read as many."""
    widest = encoder.module.config.max_window
    if chosen is not None and chosen > widest:
        raise ValueError(
            f"'{name}' has max_window = {chosen}, but its encoder reads {widest} pieces at once. Set it to at most "
            "that, or to null."
        )
    return chosen or widest


def made_for(encoder: EncoderShim[Encoder]) -> int:
    """What the encoder is said to read: where its checkpoint names a maximal length, that, if it is less."""
    declared = encoder.settings.get("source", {}).get(_DECLARED)
    widest = encoder.module.config.max_window
    return min(widest, declared) if type(declared) is int and declared >= LEAST_WINDOW else widest


def forget_limits(encoder: EncoderShim[Encoder]) -> None:
    """The encoder comes fine-tuned: what it was shown is not known, and it is used as it was made."""
    encoder.settings[_UNKNOWN] = True


def learned_window(encoder: EncoderShim[Encoder]) -> int | None:
    """The longest windows that training has shown often enough: at least a share RARE of all pieces were in windows as
    long or longer, in steps of STEP. None where the encoder was not trained here, or before."""
    seen = seen_windows(encoder)
    if not seen or encoder.settings.get(_UNKNOWN):
        return None
    held = 0
    for step in reversed(range(len(seen))):
        held += seen[step]
        if held >= _RARE * sum(seen):
            return min((step + 1) * STEP, encoder.module.config.max_window)
    raise AssertionError(seen)


def known_window(encoder: EncoderShim[Encoder]) -> int:
    """How long windows may be without going beyond what the encoder is known to read well."""
    learned = learned_window(encoder)
    return made_for(encoder) if learned is None else min(max(learned, _LEAST), encoder.module.config.max_window)


def check_overlap(overlap: int, *, longest_span: int | None) -> None:
    """ValueError where windows overlap too little for spans of up to `longest_span` pieces; None: of any length."""
    if longest_span is not None and longest_span > overlap // 2:
        raise ValueError(
            "overlap must be at least twice max_span_pieces, or spans at the end of a window could be lost; expected "
            f"{2 * longest_span} or more, but it is {overlap}."
        )


def fit_overlap(overlap: int, window: int, *, longest_span: int = 0) -> int:
    """The context in pieces around cores: as much as is asked for, but at most a quarter of the window or OVERLAP, if
    that is more, so that small windows do not read all words many times; at most half of the window, but at least twice
    the longest span, so that none is lost at the end of a core."""
    return min(overlap, max(window // 4, min(_OVERLAP, window // 2), 2 * longest_span))


class WindowSettings(Configured):
    """The settings of components that divide texts into windows by themselves."""

    max_window: Setting[int | None] = Setting(
        None,
        "pieces of a window at most, [CLS] and [SEP] included; `null`: that of the shared encoder, or as many as the "
        "encoder is known to read well, see [Long texts](../howto/long-texts.md)",
        least=LEAST_WINDOW,
        rule=f"a number of pieces, [CLS] and [SEP] included, from {LEAST_WINDOW}, or null",
    )
    overlap: Setting[int] = Setting(
        128,
        "room for context in pieces, at most a quarter of a window or 32, where a document (`one_way`) or a sentence "
        "is longer than a window",
        least=1,
    )


class ContextSettings(WindowSettings):
    """Those of components that are asked about places in a text."""

    context: Setting[str] = Setting(
        "document",
        '`"document"`: as much of the document as fits around what is asked about; `"sentence"`: its sentences alone',
        choices=CONTEXTS,
    )
    punctuation_apart: Setting[bool] = Setting(
        False,
        "whether mentions are read without the punctuation that is attached to their words, where words are what "
        'blanks divide ("Boise.", "(AP)"), see [Your own data](../howto/data.md); `false`: with it, as in the papers, '
        "whose data have none",
    )


class WindowedComponent(StoredComponent):
    """A component whose texts are read in windows, of the setting `max_window`.

    counts_windows: whether the windows that it is trained on say how long those of predictions may be; not where they
    hold other things beside the text, as those of questions do.
    """

    counts_windows = False
    _quiet = False  # nothing is said of long windows: it was said, or training is under way

    def window_size(self, *, learning: bool) -> int:
        """Pieces of a window at most, [CLS] and [SEP] included: the component's `max_window`, else that of the encoder
        that it shares. Where neither is set, in training what the encoder was made for, in predictions what it is known
        to read well. Raises ValueError where the encoder cannot read as many."""
        encoder, chosen = self.encoder, self._chosen_window()
        if chosen is None:
            return made_for(encoder) if learning else known_window(encoder)
        checked_window(encoder, chosen, name=self.name)
        if not (learning or self._quiet) and chosen > _BEYOND * (known := known_window(encoder)):
            self._quiet = True
            warnings.warn(
                f"'{self.name}' has max_window = {chosen}, but its encoder is known to read windows of {known} pieces "
                "well, by its checkpoint and what training has shown it: expect that less is found in longer ones. "
                "Set max_window to null or less, or train with longer texts.",
                stacklevel=4,
            )
        return chosen

    def widest(self) -> int:
        """Pieces without [CLS] and [SEP] that a window may have where what is asked does not fit into a shorter one."""
        return (self._chosen_window() or self.encoder.module.config.max_window) - 2

    def _chosen_window(self) -> int | None:
        own: int | None = self.cfg["max_window"]
        sharing = self.encoder.sharing
        return own or (None if sharing is None else sharing.max_window)

    def limits(self, *, learning: bool, longest_span: int | None = None) -> dict[str, int]:
        """`room`, pieces of a window without [CLS] and [SEP], and `overlap`, for `plan_windows`. Raises ValueError
        where spans of `longest_span` pieces do not fit."""
        window = self.window_size(learning=learning)
        if longest_span is not None and window - 2 <= 2 * longest_span:
            raise ValueError(
                f"'{self.name}' has windows of {window} pieces, but with max_span_pieces = {longest_span} they must "
                f"have at least {2 * longest_span + 3}. Raise max_window, or lower max_span_pieces."
            )
        return {"room": window - 2, "overlap": fit_overlap(self.cfg["overlap"], window, longest_span=longest_span or 0)}

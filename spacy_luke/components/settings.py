"""What a component's file says beside its weights, as JSON, and how it meets the settings of the pipeline's config.

"fixed": settings that the weights were trained for. "learned": labels and the like. "changed": settings that were
changed on the component itself, as [value of the config, value now]; they count where the config still has the first
one, so that an override, or an edited config.cfg, wins. "shims": of each part of the model what is no tensor, and its
digest. "encoder": digest of the shared encoder that the component was saved with. "digest": of all these.
"""

import copy
import inspect
import json
from collections.abc import Iterable
from typing import Any

from ..bridge.digests import digest_values

_FIELDS = {"model": "shims", "cfg": "learned"}  # by spaCy's names of what may be left out


def changed_settings(configured: dict[str, Any], cfg: dict[str, Any]) -> dict[str, Any]:
    return {key: [value, cfg[key]] for key, value in configured.items() if key in cfg and cfg[key] != value}


def standing_changes(changed: dict[str, Any], configured: dict[str, Any]) -> dict[str, Any]:
    """Of what `changed_settings` gave, the values that count: where the config still has the first one."""
    return {key: now for key, (before, now) in changed.items() if key in configured and configured[key] == before}


def pack_about(about: dict[str, Any]) -> str:
    return json.dumps({**about, "digest": digest_values(about)})


def unpack_about(text: str, exclude: Iterable[str], *, source: str) -> dict[str, Any]:
    """The reverse of `pack_about`. Raises ValueError where it is damaged, or lacks what is not excluded."""
    try:
        about: dict[str, Any] = json.loads(text)
        expected = about.pop("digest", None)
    except (ValueError, AttributeError, RecursionError) as error:
        raise ValueError(f"{source} is damaged: its metadata are not JSON. Copy or download it again.") from error
    if "cfg" in about:
        return _from_first_form(about)
    if digest_values(about) != expected:
        raise ValueError(
            f"{source} is damaged: its metadata are not those that were saved (their digest differs). Copy or "
            "download it again."
        )
    for name, field in _FIELDS.items():
        if field not in about and name not in exclude:
            raise ValueError(f"{source} was saved with exclude = [{name!r}]; load it with the same, or save it whole.")
    return about


def _from_first_form(about: dict[str, Any]) -> dict[str, Any]:
    """Earlier files had all settings, not knowing which of them the config has too, and no digests."""
    about["fixed"] = {"attention": about.pop("attention")}
    about["learned"] = about.pop("cfg")
    return about


def take_settings(about: dict[str, Any], configured: dict[str, Any], cfg: dict[str, Any], *, default: type) -> None:
    """Put what was learned, and what was changed, into `cfg`; everything else is as it was configured.

    default: the class, whose defaults stand for the config's values in the first form of files: what differs from them
    there counts where the config has the default.
    """
    learned = {key: value for key, value in about["learned"].items() if key not in configured}
    changed = about.get("changed")
    if changed is None:
        defaults = {key: x.default for key, x in inspect.signature(default).parameters.items()}
        changed = {key: [defaults.get(key), x] for key, x in about["learned"].items() if key not in learned}
    cfg.update(copy.deepcopy(configured))
    dict.update(cfg, learned)  # unchecked, as earlier versions may have learned something else
    cfg.update(standing_changes(changed, configured))


def check_fixed(saved: dict[str, Any], configured: dict[str, Any], *, name: str) -> None:
    """Raises ValueError where a config changes what the weights were trained for."""
    for setting, value in saved.items():
        if setting in configured and configured[setting] != value:
            raise ValueError(
                f"The weights of '{name}' were trained with {setting} = {value!r}, but its config says "
                f"{configured[setting]!r}. Load it with the config.cfg that was saved beside it, or train again."
            )

"""Names of peoples, such as "American" and "Swedes"."""

from functools import cache

from .places import COUNTRIES, read_table_lines

# Beside the adjectives of countries.
_OTHERS = """
    African Alsatian Andalusian Anglo Arab Arabian Arabic Argentinean Asian Assyrian Athenian Austro Balkan
    Baltic Basque Bavarian Bengali Berliner Bohemian Breton Briton Byzantine Californian Castilian Catalan
    Caucasian Celtic Cornish Corsican Cossack Crimean Croat Dane Dutchman Dutchmen Englishman Englishmen
    Eurasian European Fleming Flemish Florentine Frenchman Frenchmen Frisian Gaelic Galician Germanic Greco
    Gujarati Habsburg Hawaiian Hellenic Hispanic Iberian Icelander Inuit Irishman Irishmen Jew Jewish Kashmiri
    Kurd Kurdish Latin Londoner Manchu Maori Māori Moldavian Moorish Muscovite Neapolitan Nordic Norman Ottoman
    Parisian Persian Pole Prussian Punjabi Quebecois Québécois Roman Sardinian Saxon Scandinavian Scot Scots
    Scotsman Scotsmen Serb Siberian Sicilian Sinhalese Slav Slavic Spaniard Swede Tamil Tatar Texan Tibetan Turk
    Tuscan Venetian Viking Walloon Welshman Welshmen Yugoslavian Zulu
"""


def is_people(name: str) -> bool:
    """Whether an English name is that of a people, as adjective or noun, singular or plural."""
    known = peoples()
    return name in known or (name.endswith("s") and name[:-1] in known and name not in country_names())


def with_origin(what: str, origin: str) -> str:
    """A description, such as "physicist", with a country or a people: "physicist from Peru", "Peruvian physicist"."""
    if not (what and origin):
        return what
    return f"{origin} {what}" if is_people(origin) else f"{what} from {origin}"


@cache
def peoples() -> frozenset[str]:
    return frozenset(name for fields in _rows() for name in fields[-1].split("|") if name) | frozenset(_OTHERS.split())


@cache
def country_names() -> frozenset[str]:
    """English names of countries: "Laos" and "Philippines" are no plurals of peoples."""
    return frozenset(fields[2] for fields in _rows())


def _rows() -> list[list[str]]:
    return [fields for _, fields in read_table_lines(COUNTRIES, columns=6)][1:]

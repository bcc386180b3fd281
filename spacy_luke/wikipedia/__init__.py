"""Files of Wikipedia and Wikidata: pages of dumps, wikitext, items, links between languages."""

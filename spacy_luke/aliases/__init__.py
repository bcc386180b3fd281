"""The alias dictionary: names, their link probabilities and the entities they may mean; names found in words."""

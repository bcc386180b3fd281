"""A starter knowledge base of some MB, of sources that may be passed on: countries, cities, organizations, persons."""

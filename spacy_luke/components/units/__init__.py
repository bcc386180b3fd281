"""Units, a mention or a pair of mentions, that `luke_typer` and `luke_relation` classify."""

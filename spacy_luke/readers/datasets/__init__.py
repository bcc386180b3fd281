"""Published data sets, a format a module, each a function from a file to records; `table` has them by name."""

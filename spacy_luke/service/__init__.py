"""The service: a pipeline behind HTTP, with batches of what waits, limits, metrics, and the page for typed texts."""

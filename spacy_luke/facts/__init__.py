"""`graph`: what pipelines found in many documents as one graph: things, what holds between them, where it is said."""

"""Pages for the browser: what a pipeline finds in a text, and what a pretrained checkpoint takes mentions for."""

"""What a pipeline finds in a text, as JSON and as a page for the browser; what a checkpoint takes mentions for."""

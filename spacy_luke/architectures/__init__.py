"""The registered Thinc models that configs name: one a task, from the states of an encoder to scores."""

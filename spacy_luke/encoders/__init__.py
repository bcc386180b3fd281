"""Encoders that configs name, own or shared: word states read once, listeners, gradients until the step."""

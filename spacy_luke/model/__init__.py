"""The encoders and heads in torch, without padding: attention, LUKE, ERNIE, losses, packing of windows."""

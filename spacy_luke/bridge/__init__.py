"""Between torch and Thinc: the shim that owns a module, the optimizer, digests of weights, checks of numbers."""

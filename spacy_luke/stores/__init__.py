"""What all stores have in common: folders with a manifest, digests, arrays that are mapped into memory."""

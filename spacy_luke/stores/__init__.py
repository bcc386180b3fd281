"""What all stores have in common: folders with a manifest, digests, mapped arrays; where tasks run, folders of work."""

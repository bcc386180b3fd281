"""Knowledge bases in folders: entities with names, candidates and descriptions, from dumps, tables and lists."""

"""Turn a constitution in plain English into rules, with a model whose proposals the engine tries and a person reads."""

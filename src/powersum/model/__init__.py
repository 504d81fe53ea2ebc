"""The nouns of a question: model, query, evidence, graph, result, and how rounding is counted."""

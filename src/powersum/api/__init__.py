"""The public calls: each asks a question, or many, and returns the answer."""

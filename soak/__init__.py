"""A soak: random questions to every entry of powersum, every claim against brute force. Run ``python -m soak``."""

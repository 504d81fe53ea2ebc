"""The decomposed bound of one huge model, in parts on several workers."""

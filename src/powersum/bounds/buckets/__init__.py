"""Mini-buckets along an order, shared by the covering tree and its rivals: wiring, passes, decoding."""

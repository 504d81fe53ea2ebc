"""The format of certificates: what a step says, boxes, and the file; whoever proves something hands over steps."""

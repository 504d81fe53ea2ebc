"""What makes the files that are published."""

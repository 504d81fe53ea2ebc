"""What every room stands on: errors, arrays, memory, clock, signals, compilation, fast arithmetic."""

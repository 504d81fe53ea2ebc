"""Workers: each does one kind of work on a question in turns, and reports what it finds to the board."""

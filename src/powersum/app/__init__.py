"""Everything that talks to a person: command line, reports, the explorer, the figures of the paper."""

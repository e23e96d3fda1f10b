"""What the parties agree on: the protocol, its neighbors and its JSON document."""

"""From exact integers to a release: charge the ledger, draw the noise, return sketches."""

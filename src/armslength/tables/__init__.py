"""From event tables to releases: contribution bounds, public groups, out of core."""

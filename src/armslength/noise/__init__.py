"""SECRET noise, drawn exactly (docs/noise.md). The door is `draw.draw`; nothing here takes a seed."""

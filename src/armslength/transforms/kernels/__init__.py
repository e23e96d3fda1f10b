"""Hot loops of the transforms, over int64 modulo 2^64; the transforms validate, these only loop."""

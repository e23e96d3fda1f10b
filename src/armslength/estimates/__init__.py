"""What anybody can say about released sketches: values, variances, intervals; no privacy is spent here."""

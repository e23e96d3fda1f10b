"""The public mathematics of the noise: probabilities, moments and cumulants of integer laws."""

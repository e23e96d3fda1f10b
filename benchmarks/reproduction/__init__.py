"""The paper's claims beside measurements: what `make paper` computes, draws and writes."""

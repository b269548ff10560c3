"""The P4_16 (v1model) compiler: source text to IR, P4Info and, in `backend`, C++."""

"""HLS models of the NICs' kernels, and how g++ builds them with the open headers."""

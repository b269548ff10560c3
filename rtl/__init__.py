"""The NICs in SystemVerilog: where the sources are, and how Verilator builds them."""

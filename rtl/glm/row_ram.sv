// Rows of a memory with a port to write and a port to read; a row that is asked for arrives two clocks later, and zeros
// while none was: what memories say beside each other can be ORed.
module row_ram #(
    parameter int unsigned WIDTH = 512,
    // a power of two
    parameter int unsigned DEPTH = 16384
) (
    input  logic                     clk,

    input  logic                     write,
    input  logic [$clog2(DEPTH)-1:0] write_row,
    input  logic [WIDTH-1:0]         write_data,

    input  logic                     read,
    input  logic [$clog2(DEPTH)-1:0] read_row,
    output logic [WIDTH-1:0]         read_data
);

  (* ram_style = "ultra" *)
  logic [WIDTH-1:0] memory [DEPTH];
  logic             read_reg;
  logic [WIDTH-1:0] found_reg;
  logic [WIDTH-1:0] out_reg;

  assign read_data = out_reg;

  always_ff @(posedge clk) begin
    if (write) memory[write_row] <= write_data;
  end

  always_ff @(posedge clk) begin
    found_reg <= memory[read_row];
    read_reg  <= read;
    out_reg   <= read_reg ? found_reg : '0;
  end

endmodule : row_ram

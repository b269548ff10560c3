// A memory for the metadata of a ring's vectors, one word a place; a word that is read arrives with the next clock.
module meta_ram #(
    parameter int unsigned WIDTH = 32,
    // a power of two
    parameter int unsigned DEPTH = 1024
) (
    input  logic                     clk,

    input  logic                     write,
    input  logic [$clog2(DEPTH)-1:0] write_address,
    input  logic [WIDTH-1:0]         write_data,

    input  logic                     read,
    input  logic [$clog2(DEPTH)-1:0] read_address,
    output logic [WIDTH-1:0]         read_data
);

  (* ram_style = "block" *) logic [WIDTH-1:0] mem[DEPTH];
  logic [WIDTH-1:0] data_reg;

  assign read_data = data_reg;

  always_ff @(posedge clk) begin
    if (write) mem[write_address] <= write_data;
  end

  always_ff @(posedge clk) begin
    if (read) data_reg <= mem[read_address];
  end

endmodule : meta_ram

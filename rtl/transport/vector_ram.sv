// A memory with one write port and one read port; a beat that is read arrives two reads later.
// UltraRAM: 4096 beats of 512 bits are 8 blocks.
module vector_ram #(
    parameter int unsigned WIDTH = 512,
    // a power of two
    parameter int unsigned DEPTH = 4096
) (
    input  logic                     clk,

    input  logic                     write,
    input  logic [$clog2(DEPTH)-1:0] write_address,
    input  logic [WIDTH-1:0]         write_data,

    // moves both stages of the read pipeline
    input  logic                     read,
    input  logic [$clog2(DEPTH)-1:0] read_address,
    output logic [WIDTH-1:0]         read_data
);

  (* ram_style = "ultra" *) logic [WIDTH-1:0] mem[DEPTH];
  logic [WIDTH-1:0] array_reg;   // the register inside the memory block
  logic [WIDTH-1:0] output_reg;  // the block's output register

  assign read_data = output_reg;

  always_ff @(posedge clk) begin
    if (write) mem[write_address] <= write_data;
  end

  always_ff @(posedge clk) begin
    if (read) begin
      array_reg  <= mem[read_address];
      output_reg <= array_reg;
    end
  end

endmodule : vector_ram

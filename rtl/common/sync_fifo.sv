// A queue of DEPTH beats in one clock: a beat written comes out two clocks later at the earliest, and one moves in and
// one out every clock.  The output is a register, which holds one beat more than the memory's DEPTH.
// The memory is read only where it was written in an earlier clock, so no style's read-during-write rule matters.
module sync_fifo #(
    // bits of a beat
    parameter int unsigned WIDTH = 512,
    // beats in the memory; a power of two, at least 2
    parameter int unsigned DEPTH = 512,
    // "distributed" (LUTs), "block" (BRAM) or "ultra" (URAM)
    parameter string RAM_STYLE = "block"
) (
    input  logic                   clk,
    input  logic                   rst,

    input  logic [WIDTH-1:0]       s_data,
    input  logic                   s_valid,
    output logic                   s_ready,

    output logic [WIDTH-1:0]       m_data,
    output logic                   m_valid,
    input  logic                   m_ready,

    // number of beats inside, the one at the output included: 0..DEPTH+1
    output logic [$clog2(DEPTH):0] level
);

  if (WIDTH == 0) begin : gen_bad_width
    $fatal(1, "sync_fifo: WIDTH must be at least 1");
  end
  if (DEPTH < 2 || (DEPTH & (DEPTH - 1)) != 0) begin : gen_bad_depth
    $fatal(1, "sync_fifo: DEPTH must be a power of two, at least 2");
  end
  if (RAM_STYLE != "distributed" && RAM_STYLE != "block" && RAM_STYLE != "ultra") begin : gen_bad_style
    $fatal(1, "sync_fifo: RAM_STYLE must be \"distributed\", \"block\" or \"ultra\"");
  end

  localparam int unsigned IndexBits = $clog2(DEPTH);

  (* ram_style = RAM_STYLE *)
  logic [WIDTH-1:0] memory [DEPTH];
  logic [WIDTH-1:0] out_reg;
  logic             valid_reg;
  // Both pointers have one bit more than an index: they are equal when empty, half a turn apart when full.
  logic [IndexBits:0] write_reg;
  logic [IndexBits:0] read_reg;

  wire empty = write_reg == read_reg;
  wire full  = write_reg == {~read_reg[IndexBits], read_reg[IndexBits-1:0]};
  wire take  = s_valid && s_ready;
  wire fetch = !empty && (m_ready || !valid_reg);

  assign s_ready = !full;
  assign m_valid = valid_reg;
  assign m_data  = out_reg;
  assign level   = write_reg - read_reg + (IndexBits + 1)'(valid_reg);

  always_ff @(posedge clk) begin
    if (take) memory[write_reg[IndexBits-1:0]] <= s_data;
    if (fetch) out_reg <= memory[read_reg[IndexBits-1:0]];
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      write_reg <= '0;
      read_reg  <= '0;
      valid_reg <= 1'b0;
    end else begin
      if (take) write_reg <= write_reg + 1'b1;
      if (fetch) read_reg <= read_reg + 1'b1;
      if (fetch) valid_reg <= 1'b1;
      else if (m_ready) valid_reg <= 1'b0;
    end
  end

  stream_check #(.WIDTH(WIDTH)) check_s (.clk, .rst, .data(s_data), .valid(s_valid), .ready(s_ready));
  stream_check #(.WIDTH(WIDTH)) check_m (.clk, .rst, .data(m_data), .valid(m_valid), .ready(m_ready));

endmodule : sync_fifo

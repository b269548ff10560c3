// Reads and writes a worker's model a weight at a time, at a position that is set and moves on (registers MODEL_*).
module model_window
  import glm_pkg::*;
#(
    parameter int unsigned ENGINES = 8,
    parameter int unsigned MODEL_ROWS = 16384,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS),
    localparam int unsigned EngineBits = ENGINES > 1 ? $clog2(ENGINES) : 1
) (
    input  logic                  clk,
    input  logic                  rst,
    // the worker is idle; while it is not, commands are ignored
    input  logic                  idle,

    // commands, with the value that was written
    input  logic                  seek,
    input  logic                  put,
    input  logic                  next,
    input  logic [31:0]           written,

    // the position: engine, row, weight
    output logic [20:0]           position,
    output logic [31:0]           weight,
    // `weight` is the one at the position
    output logic                  ready,

    // the model port of glm_worker
    output logic                  model_write,
    output logic [EngineBits-1:0] model_engine,
    output logic [IndexBits-1:0]  model_row,
    output logic [RowBits-1:0]    model_in,
    input  logic [RowBits-1:0]    model_out
);

  localparam int unsigned Latency = 5;  // clocks from the position to its row

  logic [20:0]        position_reg;
  logic [RowBits-1:0] row_reg;      // the row with the weights that were put so far
  logic               write_reg;
  logic               advance_reg;  // a row's last weight was put: the position moves on when the row is written
  logic [2:0]         settle_reg;   // clocks until `weight` is there

  wire last = position_reg[3:0] == 4'd15;
  wire moves = idle && (next || (put && !last)) || advance_reg;
  // A position that this build does not have holds 0, and forgets.
  wire inside_build = 32'(position_reg[20:18]) < ENGINES && 32'(position_reg[17:4]) < MODEL_ROWS;

  assign position     = position_reg;
  assign ready        = idle && settle_reg == 3'd0;
  assign weight       = inside_build ? model_out[32*position_reg[3:0]+:32] : 32'd0;
  assign model_engine = position_reg[18+:EngineBits];
  assign model_row    = position_reg[4+:IndexBits];
  assign model_in     = row_reg;
  assign model_write  = write_reg;

  always_ff @(posedge clk) begin
    if (put) row_reg[32*position_reg[3:0]+:32] <= written;
    if (rst) begin
      position_reg <= '0;
      write_reg    <= 1'b0;
      advance_reg  <= 1'b0;
      settle_reg   <= 3'(Latency);
    end else begin
      write_reg   <= idle && put && last && inside_build;
      advance_reg <= idle && put && last;
      if (idle && seek) position_reg <= written[20:0];
      else if (moves) position_reg <= position_reg + 21'd1;
      if (!idle || seek || put || moves) settle_reg <= 3'(Latency);
      else if (settle_reg != 3'd0) settle_reg <= settle_reg - 3'd1;
    end
  end

  wire unused = &{1'b0, written[31:21]};

endmodule : model_window

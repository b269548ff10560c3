// Counts chunks, micro-batches, mini-batches and epochs of a training, in the order of Algorithm 1.
module progress
  import glm_pkg::*;
(
    input  logic                      clk,
    input  logic                      rst,
    input  training_t                 training,
    input  logic                      start,
    // the present chunk is done in this clock
    input  logic                      step,

    output logic                      running,
    // the chunk that is next, or being worked on
    output logic [ChunkIndexBits-1:0] chunk,
    output logic                      chunk_last,
    // its micro-batch in its mini-batch
    output logic                      batch_first,
    output logic                      batch_last
);

  logic                      running_reg;
  logic [ChunkIndexBits-1:0] chunk_reg;
  logic [31:0]               in_batch_reg;
  logic [31:0]               in_epoch_reg;
  logic [15:0]               epoch_reg;
  // comparisons with what is next, a clock ahead
  logic                      batch_end_reg;
  logic                      epoch_end_reg;

  wire micro_batch_done = step && chunk_last;

  assign running     = running_reg;
  assign chunk       = chunk_reg;
  assign chunk_last  = {1'b0, chunk_reg} == training.chunks - 1'b1;
  assign batch_first = in_batch_reg == 32'd0;
  assign batch_last  = batch_end_reg || epoch_end_reg;

  wire [31:0] in_batch_after = micro_batch_done ? (batch_last ? 32'd0 : in_batch_reg + 32'd1) : in_batch_reg;
  wire [31:0] in_epoch_after = micro_batch_done ? (epoch_end_reg ? 32'd0 : in_epoch_reg + 32'd1) : in_epoch_reg;

  always_ff @(posedge clk) begin
    if (rst || start) begin
      running_reg   <= start && !rst;
      chunk_reg     <= '0;
      in_batch_reg  <= '0;
      in_epoch_reg  <= '0;
      epoch_reg     <= '0;
      batch_end_reg <= training.batch == 32'd1;
      epoch_end_reg <= training.micro_batches == 32'd1;
    end else begin
      if (step) chunk_reg <= chunk_last ? '0 : chunk_reg + 1'b1;
      in_batch_reg  <= in_batch_after;
      in_epoch_reg  <= in_epoch_after;
      batch_end_reg <= in_batch_after == training.batch - 32'd1;
      epoch_end_reg <= in_epoch_after == training.micro_batches - 32'd1;
      if (micro_batch_done && epoch_end_reg) begin
        epoch_reg <= epoch_reg + 16'd1;
        if (epoch_reg == training.epochs - 16'd1) running_reg <= 1'b0;
      end
    end
  end

  wire unused = &{1'b0, training.bits, training.loss, training.forward_shift, training.multiplier, training.update_shift};

endmodule : progress

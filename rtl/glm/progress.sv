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
  // what the present chunk is, and its micro-batch: known from registers alone, for `step` comes late
  logic                      chunk_end_reg;
  logic                      batch_first_reg;
  logic                      batch_end_reg;
  logic                      epoch_end_reg;

  wire micro_batch_done = step && chunk_end_reg;

  assign running     = running_reg;
  assign chunk       = chunk_reg;
  assign chunk_last  = chunk_end_reg;
  assign batch_first = batch_first_reg;
  assign batch_last  = batch_end_reg || epoch_end_reg;

  // what the next one will be; one that is the last of all does not count up to the last but one
  wire chunk_end_next = chunk_end_reg ? training.chunks == (ChunkIndexBits + 1)'(1)
                                      : {1'b0, chunk_reg} == training.chunks - (ChunkIndexBits + 1)'(2);
  wire batch_end_next = batch_last ? training.batch == 32'd1 : in_batch_reg == training.batch - 32'd2;
  wire epoch_end_next = epoch_end_reg ? training.micro_batches == 32'd1 : in_epoch_reg == training.micro_batches - 32'd2;
  wire last_epoch     = epoch_reg == training.epochs - 16'd1;

  always_ff @(posedge clk) begin
    if (rst || start) begin
      running_reg     <= start && !rst;
      chunk_reg       <= '0;
      in_batch_reg    <= '0;
      in_epoch_reg    <= '0;
      epoch_reg       <= '0;
      chunk_end_reg   <= training.chunks == (ChunkIndexBits + 1)'(1);
      batch_first_reg <= 1'b1;
      batch_end_reg   <= training.batch == 32'd1;
      epoch_end_reg   <= training.micro_batches == 32'd1;
    end else begin
      if (step) begin
        chunk_reg     <= chunk_end_reg ? '0 : chunk_reg + 1'b1;
        chunk_end_reg <= chunk_end_next;
      end
      if (micro_batch_done) begin
        in_batch_reg    <= batch_last ? 32'd0 : in_batch_reg + 32'd1;
        in_epoch_reg    <= epoch_end_reg ? 32'd0 : in_epoch_reg + 32'd1;
        batch_first_reg <= batch_last;
        batch_end_reg   <= batch_end_next;
        epoch_end_reg   <= epoch_end_next;
        if (epoch_end_reg) begin
          epoch_reg <= epoch_reg + 16'd1;
          if (last_epoch) running_reg <= 1'b0;
        end
      end
    end
  end

  wire unused = &{1'b0, training.bits, training.loss, training.forward_shift, training.multiplier, training.update_shift};

endmodule : progress

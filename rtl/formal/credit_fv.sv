// Proves of the credit between an engine's update and its next mini-batch, of any chunk: each of its rows is read by
// the first micro-batch of a mini-batch only after the update of the one before has written it, and written only after
// it was read; no credit is lost or made, so none is waited for in vain.  The engine is the real one with 4 chunks;
// what it computes plays no part and falls away.
module credit_fv
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input logic                      clk,
    input logic                      rst,
    input training_t                 training,
    input logic                      start,
    input logic                      s_word_valid,
    input logic                      m_sums_ready,
    input logic                      s_scales_valid,
    input logic [ChunkIndexBits-1:0] any
);

  logic busy, s_word_ready, m_sums_valid, scales_room;

  engine #(.MODEL_ROWS(4 * Rows), .REPLAY_WORDS(16)) dut (
      .clk, .rst, .training, .start, .busy,
      .s_word('0), .s_word_valid, .s_word_ready,
      .m_sums(), .m_sums_valid, .m_sums_ready,
      .s_scales('0), .s_scales_valid, .scales_room,
      .model_write(1'b0), .model_row('0), .model_in('0), .model_out(), .saturated()
  );

  logic                      past_reg = 1'b0;
  logic                      begun_reg;
  logic [ChunkIndexBits-1:0] watched_reg;      // any one, always the same
  logic [3:0]                owed_scales_reg;  // micro-batches whose sums were taken and that have no scales yet
  logic [ChunkIndexBits:0]   taken_reg;        // credits that are not given back
  logic [Rows-1:0]           asked_reg;        // row t of the chunk was read for this mini-batch and is not written yet
  logic [Rows-2:0]           ask_line_reg;
  logic [1:0]                written_reg;      // times, up to three

  wire first_plane = dut.ahead.issue && dut.ahead.first;
  wire taking      = first_plane && dut.ahead.batch_first;
  wire [Rows-1:0] asks = {ask_line_reg, taking && dut.ahead.chunk == watched_reg};

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    assume (rst == !past_reg && start == (past_reg && !begun_reg));
    if (past_reg) assume ($stable(training));
    // The shortest way around: two chunks of a plane, a micro-batch a mini-batch, words that are always there, sums that are
    // taken at once; scales come at any time.
    assume (training.bits == 5'd1 && training.chunks == 13'd2 && training.micro_batches == 32'd100 && training.batch == 32'd1
        && training.epochs == 16'd1 && training.loss == LOSS_SQUARES && training.update_shift == '0);
    assume (s_word_valid && m_sums_ready);
    // Scales are of micro-batches whose sums were taken, as many as there is room for.
    assume (!s_scales_valid || (owed_scales_reg != 4'd0 && scales_room));

    begun_reg <= !rst && (begun_reg || start);
    if (rst || start) begin
      owed_scales_reg <= '0;
      taken_reg       <= '0;
      asked_reg       <= '0;
      ask_line_reg    <= '0;
      written_reg     <= '0;
    end else begin
      owed_scales_reg <= owed_scales_reg + 4'(m_sums_valid && m_sums_ready) - 4'(s_scales_valid);
      taken_reg       <= taken_reg + (ChunkIndexBits + 1)'(taking) - (ChunkIndexBits + 1)'(dut.credit);
      ask_line_reg    <= asks[Rows-2:0];
      if (dut.write[0] && ChunkIndexBits'(dut.write_chunk[0]) == watched_reg) written_reg <= written_reg + 2'(written_reg != 2'd3);
      for (int unsigned t = 0; t < Rows; t++) begin
        if (asks[t]) asked_reg[t] <= 1'b1;
        if (dut.write[t] && ChunkIndexBits'(dut.write_chunk[t]) == watched_reg) asked_reg[t] <= 1'b0;
      end
      none_lost_none_made : assert (taken_reg <= training.chunks && dut.ahead.credit_reg == training.chunks - taken_reg);
    end

    next_begins : cover (past_reg && taking && dut.ahead.chunk == watched_reg && written_reg == 2'd1);
    at_once : cover (past_reg && taking && dut.ahead.chunk == '0 && watched_reg == '0 && written_reg == 2'd1
        && training.chunks == 13'd2 && taken_reg == 13'd1);
  end

  for (genvar t = 0; t < Rows; t++) begin : gen_row
    wire written = dut.write[t] && ChunkIndexBits'(dut.write_chunk[t]) == watched_reg;

    always_ff @(posedge clk) begin
      if (past_reg && !rst && begun_reg) begin
        // A row that is written in this clock is read in the next one at the earliest.
        read_after_its_update : assert (!(asks[t] && asked_reg[t]));
        written_once_and_after : assert (!(written && !asked_reg[t]));
      end
    end
  end

  wire unused = &{1'b0, busy, s_word_ready};

endmodule : credit_fv

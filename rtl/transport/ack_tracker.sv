// Keeps what the receivers have acknowledged (ma) and granted (mc); both move forward only, whatever arrives and in
// whatever order.  A pair (ack, credit) is presented when its header is checked, and committed when its frame has
// proved whole.
module ack_tracker
  import serial_pkg::*;
(
    input  logic        clk,
    // low: ack and credit are held where the stream begins
    input  logic        run,
    input  seq_t        base,
    input  logic [15:0] window,
    // slots of the job: no credit lies further beyond its ack
    input  logic [20:0] slots,
    // the first sequence number that the sender has not sent yet
    input  seq_t        next,

    input  logic        present,
    input  seq_t        present_ack,
    input  seq_t        present_credit,
    // the pair presented now acknowledges what was never sent, or grants more than the slots
    output logic        impossible,
    // the frame of the pair presented last was whole: the pair counts
    input  logic        commit,

    output seq_t        acked,
    output seq_t        credit,
    // `acked` has just moved forward
    output logic        progress
);

  seq_t acked_reg;
  seq_t credit_reg;
  logic progress_reg;
  seq_t pending_ack_reg;
  seq_t pending_credit_reg;
  logic pending_reg;  // the pair presented last is possible and not committed yet

  assign acked      = acked_reg;
  assign credit     = credit_reg;
  assign progress   = progress_reg;
  assign impossible = newer(present_ack, next) || present_credit - present_ack > {11'd0, slots};

  wire moves  = commit && pending_reg && newer(pending_ack_reg, acked_reg);
  wire grants = commit && pending_reg && newer(pending_credit_reg, credit_reg);

  always_ff @(posedge clk) begin
    if (present) begin
      pending_ack_reg    <= present_ack;
      pending_credit_reg <= present_credit;
    end
    if (!run) begin
      acked_reg    <= base;
      credit_reg   <= base + {16'd0, window};
      progress_reg <= 1'b0;
      pending_reg  <= 1'b0;
    end else begin
      if (present) pending_reg <= !impossible;
      else if (commit) pending_reg <= 1'b0;
      if (moves) acked_reg <= pending_ack_reg;
      if (grants) credit_reg <= pending_credit_reg;
      progress_reg <= moves;
    end
  end

endmodule : ack_tracker

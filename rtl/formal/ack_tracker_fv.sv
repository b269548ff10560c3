// Proves of ack_tracker: whatever arrives, acked and credit never move back, and acked never passes what was sent.
module ack_tracker_fv
  import serial_pkg::*;
(
    input logic        clk,
    input logic        run,
    input seq_t        base,
    input logic [15:0] window,
    input logic [20:0] slots,
    input seq_t        next,
    input logic        present,
    input seq_t        present_ack,
    input seq_t        present_credit,
    input logic        commit
);

  logic impossible;
  seq_t acked;
  seq_t credit;
  logic progress;

  ack_tracker dut (.*);

  logic past_reg = 1'b0;
  seq_t presented_reg;  // next, when the pair that waits was presented

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    // A sender sends forward, and no packet outlives the numbers: 2^28 at each step is far more than any window.
    if (present) presented_reg <= next;
    assume (next - acked < 32'h1000_0000);
    assume (!present || acked - present_ack < 32'h1000_0000 || newer(present_ack, acked));
    assume (!dut.pending_reg || next - presented_reg < 32'h1000_0000);
    if (!past_reg) assume (!run);
    else if ($past(run)) assume (!newer($past(next), next));
    if (past_reg && run && $past(run)) begin
      ack_forward : assert (!newer($past(acked), acked));
      credit_forward : assert (!newer($past(credit), credit));
      only_by_commit : assert ($past(commit) || (acked == $past(acked) && credit == $past(credit)));
      tells : assert (progress == (acked != $past(acked)));
      not_beyond_sent : assert (!newer(acked, next));
      // what makes it inductive
      pending_possible : assert (!dut.pending_reg || presented_reg - dut.pending_ack_reg < 32'h2000_0000);
    end
    stale : cover (past_reg && run && $past(run) && $past(commit) && $past(dut.pending_reg)
                   && newer(acked, $past(dut.pending_ack_reg)));
    moves : cover (past_reg && run && progress && acked < $past(acked));
    grants : cover (past_reg && run && $past(run) && newer(credit, $past(credit)) && acked == $past(acked));
  end

endmodule : ack_tracker_fv

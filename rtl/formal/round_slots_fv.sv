// round_slots: a round, any one, whatever frames arrive and however often: its sum is taken once, and only while it is
// waited for; it is handed over once, in its turn; it is confirmed only after its sum was taken; and no round begins in its
// slot before that.
module round_slots_fv
  import serial_pkg::*;
#(
    parameter int unsigned SLOTS = 2
) (
    input logic        clk,
    input logic        rst,
    input logic        enable,
    input seq_t        first_seq,
    input logic [15:0] slots,
    input logic [31:0] rto,
    input logic        fresh_valid,
    input logic        send_ready,
    input logic        heard,
    input logic        heard_sum,
    input seq_t        heard_seq,
    input logic        hand_ready,
    input seq_t        any
);

  logic send_valid, send_ack, send_fresh, send_again, take_sum, take_confirmation, hand_valid, idle;
  seq_t send_seq, hand_seq, next;

  round_slots #(.SLOTS(SLOTS)) dut (.*);

  logic past_reg = 1'b0;
  seq_t watched_reg;   // any one, always the same
  logic begun_reg;     // it has begun
  logic summed_reg;    // its sum was taken
  logic handed_reg;
  logic confirmed_reg;
  logic again_reg;     // its PA was sent again
  logic late_reg;      // a later round's sum was taken before its own

  wire begins = send_valid && send_ready && send_fresh;
  wire mine   = heard_seq == watched_reg;

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    if (!past_reg) assume (rst);
    else assume (!rst && $stable(first_seq) && $stable(slots) && $stable(rto) && (enable || !$past(enable)));
    // From the end of the numbers on, and with times that pass at once: nothing else would be another case.
    assume (slots == 16'(SLOTS) && first_seq == 32'hffff_ffff && rto == 32'd1);

    if (!past_reg || rst || !dut.run_reg) begin
      begun_reg     <= 1'b0;
      summed_reg    <= 1'b0;
      handed_reg    <= 1'b0;
      confirmed_reg <= 1'b0;
      again_reg     <= 1'b0;
      late_reg      <= 1'b0;
    end else begin
      if (begins && send_seq == watched_reg) begun_reg <= 1'b1;
      if (take_sum && mine) summed_reg <= 1'b1;
      if (take_confirmation && mine) confirmed_reg <= 1'b1;
      if (hand_valid && hand_ready && hand_seq == watched_reg) handed_reg <= 1'b1;
      if (send_valid && send_ready && send_again && !send_ack && send_seq == watched_reg) again_reg <= 1'b1;
      if (take_sum && newer(heard_seq, watched_reg) && begun_reg && !summed_reg) late_reg <= 1'b1;

      begins_once : assert (!(begins && send_seq == watched_reg && begun_reg));
      sum_once : assert (!(take_sum && mine && (summed_reg || !begun_reg)));
      confirmed_once : assert (!(take_confirmation && mine && (confirmed_reg || !summed_reg)));
      handed_once : assert (!(hand_valid && hand_ready && hand_seq == watched_reg && (handed_reg || !summed_reg)));
      slot_not_used_before : assert (!(begins && begun_reg && !confirmed_reg
          && send_seq[$clog2(SLOTS)-1:0] == watched_reg[$clog2(SLOTS)-1:0]));
      in_window : assert (next - dut.base_reg <= 32'(SLOTS) && dut.hand_reg - dut.base_reg <= next - dut.base_reg);
      nothing_false_is_sent : assert (!(send_valid && !send_fresh && !send_ack && send_seq == watched_reg
          && (!begun_reg || summed_reg)));
      acknowledges_what_it_has : assert (!(send_valid && send_ack && send_seq == watched_reg && !summed_reg));
    end

    overtaken : cover (past_reg && handed_reg && late_reg);
    repeated : cover (past_reg && handed_reg && again_reg);
    reused : cover (past_reg && confirmed_reg && begins && send_seq == watched_reg + 32'(SLOTS));
    wraps : cover (past_reg && handed_reg && watched_reg == 32'd0);
  end

endmodule : round_slots_fv

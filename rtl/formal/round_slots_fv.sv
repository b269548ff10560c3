// Proves of round_slots: a round, any one, whatever frames arrive and however often, wherever the numbers begin: its
// sum is taken once, and only while it is waited for; it is handed over once, in its turn; it is confirmed only after
// its sum was taken; it is acknowledged only then; no round begins in its slot before its confirmation; and what each
// try waits is doubled without wrapping, whatever `rto` is; `lacks` is never beyond a sum that is missing, and no
// acknowledgement leaves while it is behind.  For ever, by induction: what the device remembers is always what has
// happened (`invariants`), and from there every step is right.
module round_slots_fv
  import serial_pkg::*;
  import transport_pkg::TimerFloor;
#(
    parameter int unsigned SLOTS = 4,
    parameter logic [31:0] FLOOR = TimerFloor
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

  localparam int unsigned SlotBits = $clog2(SLOTS);
  localparam int unsigned Acks = 8;  // the queue's
  localparam logic [1:0] AwaitsSum = 2'd0, AwaitsConfirmation = 2'd1, Confirmed = 2'd2;  // state_t

  logic send_valid, send_ack, send_fresh, send_again, take_sum, take_confirmation, hand_valid, idle;
  seq_t send_seq, lacks, hand_seq, next;

  round_slots #(.SLOTS(SLOTS), .FLOOR(FLOOR)) dut (.*);

  logic past_reg = 1'b0;
  seq_t watched_reg;    // any one, always the same
  // what has happened to it
  logic begun_reg;
  logic summed_reg;
  logic handed_reg;
  logic confirmed_reg;
  logic retired_reg;    // it is no longer in flight
  logic again_reg;      // its PA was sent again
  logic late_reg;       // a later round's sum was taken before its own

  function automatic logic [31:0] wait_of(logic [1:0] tries);
    logic [34:0] longer = {3'd0, rto < FLOOR ? FLOOR : rto} << tries;
    return longer > 35'h7fff_ffff ? 32'h7fff_ffff : longer[31:0];
  endfunction

  wire begins = send_valid && send_ready && send_fresh;
  wire mine   = heard_seq == watched_reg;
  wire flying = begun_reg && !retired_reg;

  // Acknowledgements that wait are of rounds whose sums were taken.
  wire [3:0]      waiting = dut.acks.write_reg - dut.acks.read_reg;
  logic [Acks:0] false_ack;
  for (genvar i = 0; i < Acks; i++) begin : gen_ack
    wire [2:0] place = 3'(i) - dut.acks.read_reg[2:0];
    assign false_ack[i] = {1'b0, place} < waiting && dut.acks.memory[i] == watched_reg && !summed_reg;
  end
  assign false_ack[Acks] = dut.ack_valid && dut.ack_seq == watched_reg && !summed_reg;

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    if (!past_reg) assume (rst);
    else assume (!rst && $stable(first_seq) && $stable(slots) && $stable(rto));
    // A stream has fewer than 2**32 rounds: no number comes twice.
    assume (!(past_reg && dut.run_reg && begins && send_seq == watched_reg && retired_reg));

    if (!past_reg || rst || !dut.run_reg) begin
      begun_reg     <= 1'b0;
      summed_reg    <= 1'b0;
      handed_reg    <= 1'b0;
      confirmed_reg <= 1'b0;
      retired_reg   <= 1'b0;
      again_reg     <= 1'b0;
      late_reg      <= 1'b0;
    end else begin
      if (begins && send_seq == watched_reg) begun_reg <= 1'b1;
      if (take_sum && mine) summed_reg <= 1'b1;
      if (take_confirmation && mine) confirmed_reg <= 1'b1;
      if (hand_valid && hand_ready && hand_seq == watched_reg) handed_reg <= 1'b1;
      if (dut.free && dut.base_reg == watched_reg) retired_reg <= 1'b1;
      if (send_valid && send_ready && send_again && !send_ack && send_seq == watched_reg) again_reg <= 1'b1;
      if (take_sum && newer(heard_seq, watched_reg) && begun_reg && !summed_reg) late_reg <= 1'b1;

      begins_once : assert (!(begins && send_seq == watched_reg && begun_reg));
      sum_once : assert (!(take_sum && mine && (summed_reg || !begun_reg)));
      confirmed_once : assert (!(take_confirmation && mine && (confirmed_reg || !summed_reg)));
      handed_once : assert (!(hand_valid && hand_ready && hand_seq == watched_reg && (handed_reg || !summed_reg)));
      slot_not_used_before : assert (!(begins && begun_reg && !confirmed_reg
          && send_seq[SlotBits-1:0] == watched_reg[SlotBits-1:0]));
      nothing_false_is_sent : assert (!(send_valid && !send_fresh && !send_ack && send_seq == watched_reg
          && (!begun_reg || summed_reg)));
      acknowledges_what_it_has : assert (!(send_valid && send_ack && send_seq == watched_reg && !summed_reg));
      lacks_what_is_missing : assert (!(between(watched_reg, dut.base_reg, lacks) && !summed_reg));
      acknowledges_all_it_has : assert (!(send_valid && send_ack && lacks == watched_reg && lacks != next && summed_reg));
      waits : assert ({dut.wait_reg[0], dut.wait_reg[1], dut.wait_reg[2], dut.wait_reg[3]}
          == {wait_of(2'd0), wait_of(2'd1), wait_of(2'd2), wait_of(2'd3)});
      leaves_when_done : assert (!retired_reg || (handed_reg && confirmed_reg));

      // ---- invariants ----------------------------------------------------------------------------------------------
      in_window : assert (next - dut.base_reg <= 32'(SLOTS) && dut.hand_reg - dut.base_reg <= next - dut.base_reg);
      in_flight : assert (flying == between(watched_reg, dut.base_reg, next) && (begun_reg || !retired_reg));
      in_order : assert ((!summed_reg || begun_reg) && (!handed_reg || summed_reg) && (!confirmed_reg || summed_reg));
      its_state : assert (!flying || dut.state_reg[watched_reg[SlotBits-1:0]]
          == (confirmed_reg ? Confirmed : summed_reg ? AwaitsConfirmation : AwaitsSum));
      its_turn : assert (!flying || handed_reg == between(watched_reg, dut.base_reg, dut.hand_reg));
      lacks_in_window : assert (dut.hand_reg - dut.base_reg <= lacks - dut.base_reg
          && lacks - dut.base_reg <= next - dut.base_reg);
      told : assert (!dut.told_reg || lacks == next || dut.state_reg[lacks[SlotBits-1:0]] == AwaitsSum);
      acks_are_true : assert (waiting <= 4'(Acks) && false_ack == '0);
    end

    overtaken : cover (past_reg && handed_reg && late_reg);
    repeated : cover (past_reg && handed_reg && again_reg);
    reused : cover (past_reg && confirmed_reg && begins && send_seq == watched_reg + 32'(SLOTS));
    wraps : cover (past_reg && handed_reg && watched_reg == 32'd0 && first_seq == 32'hffff_ffff);
    stopped : cover (past_reg && handed_reg && !enable);
  end

endmodule : round_slots_fv

// Proves of consumer: a sequence number, any one, is taken once and handed over once, in order, whatever is presented
// how often and in whatever order; what was not taken is never acknowledged.
module consumer_fv
  import serial_pkg::*;
#(
    parameter int unsigned WINDOW = 4
) (
    input logic        clk,
    input logic        rst,
    input logic        enable,
    input seq_t        base,
    input logic [15:0] window,
    input seq_t        present_seq,
    // the frame presented now is good
    input logic        whole,
    input logic        pop,
    input logic        missing_ready,
    input seq_t        any
);

  logic run, repeated, outside, ready, missing_valid;
  seq_t ack, consumed, credit, highest, missing_seq;

  logic take_reg = 1'b0;
  seq_t take_seq_reg;

  consumer #(.WINDOW(WINDOW)) dut (.reader_idle(1'b1), .take(take_reg), .take_seq(take_seq_reg), .*);

  logic        past_reg = 1'b0;
  seq_t        watched_reg;  // any one, always the same
  logic        taken_reg;
  logic        handed_reg;
  logic        late_reg;  // others were taken before it

  always_ff @(posedge clk) begin
    past_reg    <= 1'b1;
    watched_reg <= past_reg ? watched_reg : any;
    if (!past_reg) assume (rst);
    else assume (rst == 1'b0 && $stable(base) && $stable(window) && (enable || !$past(enable)));
    assume (window == 16'(WINDOW) || window == 16'd1);
    assume (!pop || ready);
    // A frame is judged when its header is there, and taken when it has proved whole: one at a time.
    take_reg     <= run && enable && whole && !repeated && !outside && !take_reg;
    take_seq_reg <= present_seq;

    if (!run || !past_reg || rst) begin
      taken_reg  <= 1'b0;
      handed_reg <= 1'b0;
      late_reg   <= 1'b0;
    end else begin
      if (take_reg && take_seq_reg == watched_reg) taken_reg <= 1'b1;
      if (pop && consumed == watched_reg) handed_reg <= 1'b1;
      if (take_reg && newer(take_seq_reg, watched_reg) && !taken_reg) late_reg <= 1'b1;
      once : assert (!(take_reg && take_seq_reg == watched_reg && taken_reg));
      handed_once : assert (!(pop && consumed == watched_reg && (handed_reg || !taken_reg)));
      acknowledged_only_taken : assert (!(newer(ack, watched_reg) && watched_reg - base < 32'h4000_0000) || taken_reg);
      in_window : assert (ack - consumed <= {16'd0, window} && credit == consumed + {16'd0, window});
    end
    out_of_order : cover (past_reg && run && handed_reg && late_reg);
    wraps : cover (past_reg && run && handed_reg && consumed < base);
    full : cover (past_reg && run && ack - consumed == {16'd0, window} && window == 16'(WINDOW));
    finds_missing : cover (past_reg && run && missing_valid && missing_ready);
  end

endmodule : consumer_fv

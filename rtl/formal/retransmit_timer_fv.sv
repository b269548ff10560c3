// Proves of retransmit_timer: while something is in flight and ma stands still, a timeout comes exactly when its time
// is over, for all settings; the time is rto, then twice as much after each timeout up to rto_most, and on top of it
// the worker's own delay.
module retransmit_timer_fv
  import transport_pkg::*;
(
    input logic             clk,
    input logic             run,
    input timing_settings_t timing,
    input logic             outstanding,
    input logic             progress
);

  logic timeout;

  retransmit_timer dut (.*);

  logic        past_reg = 1'b0;
  logic [33:0] since_reg;  // clocks since the time began
  logic [32:0] time_reg;   // rto, doubled

  wire [33:0] delay = {2'd0, timing.resend_delay | 32'd64};
  wire [32:0] most  = {1'b0, timing.rto_most};
  wire        over  = since_reg == {1'b0, time_reg} + delay;

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    if (!past_reg) assume (!run);
    // Settings stay while a stream runs, and from the clock before.
    else if (run) assume ($stable(timing));

    if (!run || progress || !outstanding) begin
      since_reg <= '0;
      time_reg  <= {1'b0, timing.rto};
    end else if (over) begin
      since_reg <= '0;
      time_reg  <= {time_reg[31:0], 1'b0} > most ? most : {time_reg[31:0], 1'b0};
    end else begin
      since_reg <= since_reg + 34'd1;
    end

    if (past_reg && run) begin
      in_time : assert (timeout == $past(run && outstanding && !progress && over));
      // what makes it inductive
      counts_down : assert ({1'b0, dut.left_reg} + since_reg == {1'b0, time_reg} + delay);
      same_time : assert (!time_reg[32] && dut.rto_reg == time_reg[31:0]);
      beyond_32_bits : cover (dut.left_reg[32] && outstanding);
    end
  end

endmodule : retransmit_timer_fv

// Proves of credit_gate in a sender's loop: next never passes the credit, nor the window beyond what was acknowledged,
// whatever the receivers grant (credit moves forward only, which ack_tracker_fv proves).
module credit_gate_fv
  import serial_pkg::*;
(
    input logic        clk,
    input logic        rst,
    input seq_t        base,
    input logic        push,
    input logic        ready,
    input logic [31:0] grant,
    input logic [15:0] settle
);

  localparam logic [15:0] Window = 16'd5;

  seq_t acked_reg, next_reg, end_reg, credit_reg;
  logic open, lacks_credit, lacks_window;

  credit_gate dut (
      .acked(acked_reg),
      .next(next_reg),
      .end_seq(end_reg),
      .credit(credit_reg),
      .window(Window),
      .open,
      .lacks_credit,
      .lacks_window
  );

  logic started_reg = 1'b0;

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    assume (grant < 32'h1_0000 && settle <= 16'(next_reg - acked_reg));
    assume (credit_reg - acked_reg < 32'h4000_0000);
    if (rst) begin
      acked_reg  <= base;
      next_reg   <= base;
      end_reg    <= base;
      credit_reg <= base;
    end else begin
      if (open && ready) next_reg <= next_reg + 32'd1;
      if (push && end_reg - acked_reg < 32'd1024) end_reg <= end_reg + 32'd1;
      credit_reg <= credit_reg + grant;
      acked_reg  <= acked_reg + 32'(settle);
    end
    if (started_reg && !rst) begin
      within_credit : assert (!newer(next_reg, credit_reg));
      within_window : assert (next_reg - acked_reg <= {16'd0, Window});
      never_without_data : assert (!newer(next_reg, end_reg) && end_reg - acked_reg <= 32'd1024);
      says_why : assert (open + lacks_credit + lacks_window == (next_reg != end_reg));
      stops_at_credit : cover (lacks_credit && next_reg == credit_reg && next_reg < acked_reg);
      stops_at_window : cover (lacks_window);
      across_the_wrap : cover (open && next_reg == 32'hffff_ffff && ready);
    end
  end

endmodule : credit_gate_fv

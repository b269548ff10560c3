// Proves of retransmitter: after a timeout the first frame sent again is ma, and nothing is ever sent again that is not
// in flight.
module retransmitter_fv
  import serial_pkg::*;
(
    input logic        clk,
    input logic        run,
    input seq_t        base,
    input seq_t        acked,
    input seq_t        next,
    input logic [15:0] window,
    input logic        timeout,
    input logic        request,
    input seq_t        request_seq,
    input logic        m_ready
);

  logic progress_reg;
  logic m_valid;
  seq_t m_seq;

  retransmitter #(.REQUESTS(4)) dut (.progress(progress_reg), .*);

  logic past_reg = 1'b0;
  logic first_reg = 1'b0;  // since the timeout nothing was sent, and ma has not moved
  seq_t ma_reg;

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    if (!past_reg) assume (!run);
    assume (next - acked <= {16'd0, window} && window <= 16'd32768);
    assume (!timeout || next != acked);
    if (past_reg && $past(run)) begin
      assume (acked - $past(acked) <= $past(next) - $past(acked));
      assume (next - $past(next) <= 32'd1);
      assume ($stable(window));
    end
    progress_reg <= past_reg && run && acked != ma_reg;
    ma_reg       <= acked;
    if (!run) first_reg <= 1'b0;
    else if (timeout) first_reg <= 1'b1;
    else if ((m_valid && m_ready) || acked != ma_reg) first_reg <= 1'b0;

    if (past_reg && run && $past(run)) begin
      in_flight : assert (!m_valid || m_seq - acked < next - acked);
      if (first_reg && acked == ma_reg) begin
        starts_at_ma : assert (!m_valid || m_seq == acked);
        // what makes it inductive
        something_in_flight : assert (next != acked);
        range_is_ma : assert (dut.head_valid_reg ? dut.head_reg == acked
                              : dut.resend_reg == acked && newer(dut.stop_reg, acked) && dut.burst_reg != 16'd0
                                && dut.recover_reg - acked - 32'd1 < next - acked);
      end
      resends : cover (first_reg && m_valid && m_ready && acked == 32'hffff_ffff);
      goes_on : cover (m_valid && m_ready && m_seq != acked && !$past(timeout) && dut.burst_reg > 16'd1);
      asked_for : cover (m_valid && m_ready && dut.burst_reg == 16'd0);
    end
  end

endmodule : retransmitter_fv

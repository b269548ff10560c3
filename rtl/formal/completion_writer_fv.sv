// This harness shows of completion_writer that neither direction waits for more than one record of the other, that a record on
// offer stays as it is until it is taken, and that what the statistics count comes no more often than they can count it.
module completion_writer_fv
  import hostif_pkg::*;
(
    input logic        clk,
    input logic        rst,
    input logic [31:0] now,
    input completion_t s_push,
    input logic        s_push_valid,
    input completion_t s_pull,
    input logic        s_pull_valid,
    input logic        m_record_ready,
    input logic        record_done,
    input logic        record_error
);

  // clocks in which the statistics add up one completion
  localparam int unsigned CountClocks = 4;

  logic      s_push_ready, s_pull_ready;
  physical_t m_record_address;
  record_t   m_record;
  logic      m_record_valid;
  logic      done, done_lost, done_is_pull;
  status_t   done_status;
  logic [31:0] done_bytes, done_saturated, done_nonfinite, done_latency;

  completion_writer dut (.*);

  logic       started_reg = 1'b0;
  logic [1:0] push_waited_reg;  // pulls that were taken while a push waits
  logic [1:0] pull_waited_reg;
  logic [2:0] quiet_reg;        // clocks since a completion was told, up to the most

  wire push_taken = s_push_valid && s_push_ready;
  wire pull_taken = s_pull_valid && s_pull_ready;

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    if (started_reg && !rst && !$past(rst)) begin
      // what is offered stays
      assume (!$past(s_push_valid && !s_push_ready) || s_push_valid);
      assume (!$past(s_pull_valid && !s_pull_ready) || s_pull_valid);
    end
    // no more answers than records
    assume (!record_done || dut.answer_room);

    if (rst || !s_push_valid || push_taken) push_waited_reg <= '0;
    else push_waited_reg <= push_waited_reg + 2'(pull_taken);
    if (rst || !s_pull_valid || pull_taken) pull_waited_reg <= '0;
    else pull_waited_reg <= pull_waited_reg + 2'(push_taken);
    if (rst) quiet_reg <= '1;
    else if (done) quiet_reg <= '0;
    else if (quiet_reg != '1) quiet_reg <= quiet_reg + 1'b1;

    if (started_reg && !rst) begin
      one_at_a_time : assert (!(push_taken && pull_taken));
      push_waits : assert (push_waited_reg <= 2'd1);
      pull_waits : assert (pull_waited_reg <= 2'd1);
      push_is_next : assert (push_waited_reg == '0 || !dut.pull_first_reg);
      pull_is_next : assert (pull_waited_reg == '0 || dut.pull_first_reg);
      if (!$past(rst) && $past(m_record_valid && !m_record_ready)) begin
        stays : assert (m_record_valid && m_record == $past(m_record) && m_record_address == $past(m_record_address));
      end
      countable : assert (!done || quiet_reg >= 3'(CountClocks - 1));
      // what makes it inductive
      counts_down : assert (!done || dut.wait_reg == 3'(dut.TellClocks));
      apart : assert (4'(quiet_reg) + 4'(dut.wait_reg) >= 4'(dut.TellClocks - 1));
      in_turns : cover (push_waited_reg == 2'd1 && push_taken && s_pull_valid);
      told : cover (done && done_is_pull);
    end
  end

endmodule : completion_writer_fv

// Proves of segmenter: a segment is not empty and lies in one block of 4 KiB, on a memory beat, whatever is asked and
// whatever the TLB says; and no translation is kept that was looked up before, or while, an entry changed: what was
// unmapped is not used; and whatever is asked of the TLB is waited for, so that no request gets another one's page.
module segmenter_fv
  import hostif_pkg::*;
(
    input logic      clk,
    input logic      rst,
    input type_set_t types,
    input type_set_t block_types,
    input request_t  s_request,
    input logic      s_request_valid,
    input logic      m_job_ready,
    input logic      m_segment_ready,
    input logic      lookup_ready,
    input logic      result_valid,
    input logic      result_hit,
    input ppn_t      result_ppn,
    input logic      filled
);

  logic        s_request_ready, m_job_valid, m_segment_valid, lookup_valid, missed, unanswerable;
  job_t        m_job;
  segment_t    m_segment;
  vpn_t        lookup_vpn;
  logic [63:0] missed_address;

  segmenter dut (.*);

  logic started_reg = 1'b0;

  // the states by their order: IDLE, COMPLETION, PAGES, JOB, SEGMENT, SEND
  wire [2:0] state = dut.state_reg;
  wire       to_come = state == 3'd4 || (state == 3'd5 && !m_segment.last) || state == 3'd2
                       || (state == 3'd3 && dut.status_reg == STATUS_OK);

  vpn_t asked_vpn_reg;   // of the lookup under way
  logic old_reg;         // an entry has changed since the lookup under way was taken
  logic old_result_reg;  // such a lookup's result came in the last clock

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    // The TLB answers what it was asked.
    assume (!result_valid || dut.asked_reg);
    if (lookup_valid && lookup_ready) asked_vpn_reg <= lookup_vpn;
    if (lookup_valid && lookup_ready) old_reg <= filled;
    else if (filled) old_reg <= 1'b1;
    old_result_reg <= !rst && result_valid && (old_reg || filled);
    if (!started_reg) assume (rst);
    if (started_reg && !rst) begin
      if (m_segment_valid) begin
        not_empty : assert (m_segment.bytes != 0);
        in_one_block : assert ({2'b0, m_segment.address[11:0]} + {1'b0, m_segment.bytes} <= 14'd4096);
        on_a_beat : assert (m_segment.address[5:0] == 6'd0);
      end
      keeps_nothing_old : assert (!(old_result_reg && (dut.kept_reg[0] || dut.kept_reg[1])));
      waits_for_its_answer : assert (!dut.asked_reg || (dut.wants && dut.wanted == asked_vpn_reg));
      // what makes it inductive
      asks_for_what_it_lacks : assert (!dut.asked_reg || !dut.have);
      old_is_stale : assert (!dut.asked_reg || (old_reg == dut.stale_reg && !(old_reg && (dut.kept_reg[0] || dut.kept_reg[1]))));
      something_left : assert (!to_come || dut.left_reg != 32'd0);
      request_is_sound : assert (state != 3'd1 || dut.status_reg != STATUS_OK
                                 || (dut.request_reg.len != 0 && dut.request_reg.vaddr[5:0] == 0));
      stays_sound : assert (!(state >= 3'd2 && dut.status_reg == STATUS_OK)
                            || (dut.request_reg.len != 0 && dut.request_reg.vaddr[5:0] == 0));
      segments_of_sound : assert (!(state >= 3'd4) || dut.status_reg == STATUS_OK);
      pages_of_sound : assert (state != 3'd2 || dut.status_reg == STATUS_OK);
      at_a_beat : assert (!to_come || dut.at_reg[5:0] == 6'd0);
      legal : assert (state <= 3'd5);
      whole_block : cover (m_segment_valid && m_segment.bytes == 13'd4096);
      split : cover (m_segment_valid && !m_segment.last && m_segment.bytes == 13'd64);
      looked_up_in_vain : cover (old_result_reg && lookup_valid);
      tail : cover (m_segment_valid && m_segment.last && m_segment.bytes == 13'd1);
    end
  end

endmodule : segmenter_fv

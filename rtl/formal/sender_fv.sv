// Proves of the whole sender, its gate, tracker, timer and repeats together: nothing is sent beyond the credit or the window,
// whatever heartbeats say and whenever they come; what is sent again is in flight; and no place of the ring is given back before
// its vector is acknowledged.
//
// Everything is told by how far it lies from what is acknowledged: the distances are few bits, which decides it soon.
module sender_fv
  import serial_pkg::*;
  import transport_pkg::*;
#(
    parameter int unsigned WINDOW = 8,
    localparam int unsigned FewBits = $clog2(WINDOW) + 1
) (
    input logic             clk,
    input logic             run,
    input stream_settings_t settings,
    input timing_settings_t timing,
    input logic [15:0]      window,
    input logic             put,
    input logic             reader_idle,
    input logic             present,
    // a heartbeat's ack - acked, and its credit - its ack
    input logic [31:0]      ahead,
    input logic [31:0]      granted_ahead,
    input logic             commit,
    input logic             request,
    input seq_t             request_seq,
    input logic             m_ready
);

  // No packet outlives the numbers: a heartbeat's ack lies no more than these behind what is acknowledged when it comes.
  localparam seq_t Step = 32'h1000_0000;

  logic ring_full, impossible, m_valid, m_again, progress, timeout, lacks_credit, lacks_window;
  seq_t m_seq, acked, next, end_seq, credit;

  wire seq_t present_ack = acked + ahead;
  wire seq_t present_credit = present_ack + granted_ahead;

  sender #(.WINDOW(WINDOW)) dut (.*);

  typedef logic [FewBits-1:0] few_t;
  typedef logic signed [31:0] way_t;

  logic        past_reg = 1'b0;
  few_t        flying_reg;   // next - acked
  few_t        ended_reg;    // end - acked
  few_t        kept_reg;     // acked - the first place that was not given back
  logic [22:0] granted_reg;  // credit - acked
  way_t        pair_reg;     // the ack of the pair that waits - acked
  logic [20:0] slots_reg;    // its credit - its ack

  wire [20:0] most    = {5'd0, window} > settings.slots ? {5'd0, window} : settings.slots;
  wire        sends   = m_valid && m_ready;
  wire        pending = dut.tracker.pending_reg;

  // what is acknowledged moves by so many
  wire way_t  moved   = dut.tracker.moves ? pair_reg : '0;
  wire way_t  grants  = dut.tracker.grants ? pair_reg + way_t'({11'd0, slots_reg}) : way_t'({9'd0, granted_reg});

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    if (!past_reg) assume (!run);
    assume (window != 16'd0 && window <= 16'(WINDOW));
    assume (!run || ($stable(settings) && $stable(window)));
    assume (!put || !ring_full);
    assume (!present || way_t'(ahead) >= -way_t'(Step));

    if (!run) begin
      {flying_reg, ended_reg, kept_reg} <= '0;
      granted_reg <= {7'd0, window};
    end else begin
      flying_reg  <= flying_reg + few_t'(sends && !m_again) - few_t'(moved);
      ended_reg   <= ended_reg + few_t'(put) - few_t'(moved);
      kept_reg    <= (reader_idle ? few_t'(0) : kept_reg) + few_t'(moved);
      granted_reg <= 23'(grants - moved);
    end
    if (present) begin
      pair_reg  <= way_t'(ahead) - moved;
      slots_reg <= granted_ahead[20:0];
    end

    if (past_reg && run) begin
      if (sends && !m_again) begin
        in_order : assert (m_seq == next);
        granted : assert (granted_reg > 23'(flying_reg));
        in_the_window : assert (16'(flying_reg) < window);
        has_data : assert (ended_reg != flying_reg);
      end
      in_flight : assert (!(sends && m_again) || m_seq - acked < 32'(flying_reg));
      within_window : assert (16'(flying_reg) <= window);
      within_credit : assert (granted_reg >= 23'(flying_reg) && granted_reg - 23'(flying_reg) <= 23'(most));
      in_the_ring : assert (flying_reg <= ended_reg && kept_reg <= few_t'(WINDOW) && ended_reg <= few_t'(WINDOW) - kept_reg);
      forward_only : assert (moved >= 0);
      says_why : assert (dut.open + lacks_credit + lacks_window == (next != end_seq));
      next_as_said : assert (next == acked + 32'(flying_reg));
      end_as_said : assert (end_seq == acked + 32'(ended_reg));
      credit_as_said : assert (credit == acked + 32'(granted_reg));
      freed_as_said : assert (dut.freed_reg == acked[FewBits-1:0] - kept_reg);
      // what makes it inductive
      if (pending) begin
        possible : assert (pair_reg >= -way_t'(Step) - way_t'(WINDOW) && pair_reg <= way_t'(32'(flying_reg)));
        few_slots : assert (slots_reg <= settings.slots);
        pair_ack_as_said : assert (dut.tracker.pending_ack_reg == acked + pair_reg);
        pair_credit_as_said : assert (dut.tracker.pending_credit_reg == dut.tracker.pending_ack_reg + 32'(slots_reg));
      end
    end
    stops_at_credit : cover (past_reg && run && lacks_credit && next < acked);
    stops_at_window : cover (past_reg && run && lacks_window);
    across_the_wrap : cover (past_reg && run && sends && !m_again && next == 32'hffff_ffff);
    again : cover (past_reg && run && sends && m_again);
    full : cover (past_reg && run && ring_full && kept_reg != '0);
  end

endmodule : sender_fv

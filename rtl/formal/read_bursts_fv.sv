// Proves of axi_read_engine: whatever segments come, no burst crosses a multiple of 4 KiB, none is empty or longer than
// it may be, what is asked stays until it is taken, and every beat that was asked for has room in the buffer, whenever
// it comes.
module read_bursts_fv
  import hostif_pkg::*;
(
    input logic         clk,
    input logic         rst,
    input logic         hold,
    input segment_t     s_segment,
    input logic         s_segment_valid,
    input logic         m_axi_arready,
    input logic [511:0] m_axi_rdata,
    input logic [1:0]   m_axi_rresp,
    input logic         m_axi_rlast,
    input logic         m_axi_rvalid,
    input logic         m_axis_tready
);

  localparam int unsigned Burst = 4;

  logic         idle, s_segment_ready, m_axi_arvalid, m_axi_rready, m_axis_tlast, m_axis_tvalid;
  physical_t    m_axi_araddr;
  logic [7:0]   m_axi_arlen;
  logic [511:0] m_axis_tdata;
  logic [63:0]  m_axis_tkeep;
  logic [2:0]   m_axis_tuser;

  localparam int unsigned Buffer = 8;
  localparam int unsigned Bursts = 2;

  axi_read_engine #(.BURST_BEATS(Burst), .BUFFER_BEATS(Buffer), .BURSTS(Bursts)) dut (.s_segment_user(1'b0), .*);

  // The beats of a burst lie above its other fields.
  localparam int unsigned BeatBits = $clog2(Burst) + 1;
  localparam int unsigned BurstBits = BeatBits + 6 + 1 + 1 + 1;

  function automatic logic [BeatBits-1:0] beats_of(logic [BurstBits-1:0] burst);
    return burst[BurstBits-1-:BeatBits];
  endfunction

  // Beats that were asked for and have not come, by the engine's own list of bursts; and whether that list makes sense.
  logic [7:0] asked;
  logic       sensible;
  wire  [1:0] listed = dut.outstanding.write_reg - dut.outstanding.read_reg;

  always_comb begin
    asked    = 8'd0;
    sensible = listed <= 2'(Bursts) && (dut.outstanding.valid_reg || dut.beat_reg == '0);
    for (int unsigned i = 0; i < Bursts; i++) begin
      if (2'(i) < listed) begin
        asked    = asked + 8'(beats_of(dut.outstanding.memory[1'(dut.outstanding.read_reg[0] + 1'(i))]));
        sensible = sensible && beats_of(dut.outstanding.memory[1'(dut.outstanding.read_reg[0] + 1'(i))]) != '0
                   && beats_of(dut.outstanding.memory[1'(dut.outstanding.read_reg[0] + 1'(i))]) <= BeatBits'(Burst);
      end
    end
    if (dut.outstanding.valid_reg) begin
      asked    = asked + 8'(dut.burst.beats) - 8'(dut.beat_reg);
      sensible = sensible && dut.beat_reg < dut.burst.beats && dut.burst.beats <= BeatBits'(Burst);
    end
  end

  wire [3:0] in_memory = dut.buffer.write_reg - dut.buffer.read_reg;
  wire [7:0] kept = 8'(in_memory) + 8'(dut.buffer.valid_reg);

  logic started_reg = 1'b0;
  wire [12:0] left_bytes = {dut.beats_left_reg, 6'd0};

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    // what the proof of the segmenter says
    assume (s_segment.bytes != 0);
    assume (s_segment.address[5:0] == 0);
    assume ({2'b0, s_segment.address[11:0]} + {1'b0, s_segment.bytes} <= 14'd4096);
    if (started_reg && !rst) begin
      if (m_axi_arvalid) begin
        in_one_block : assert ({2'b0, m_axi_araddr[11:0]} + {6'(m_axi_arlen + 8'd1), 6'd0} <= 14'd4096);
        no_longer : assert (m_axi_arlen < Burst);
        on_a_beat : assert (m_axi_araddr[5:0] == 0);
      end
      if ($past(m_axi_arvalid && !m_axi_arready && !rst)) begin
        stays : assert (m_axi_arvalid && $stable(m_axi_araddr) && $stable(m_axi_arlen));
      end
      room_for_what_comes : assert (!dut.arrives || dut.buffer_ready);
      // what makes it inductive: what was asked for, what is kept and what is free are the buffer
      list : assert (sensible && in_memory <= 4'(Buffer));
      room : assert (asked + kept + 8'(dut.room_reg) == 8'(Buffer));
      if (dut.busy_reg) begin
        some_left : assert (dut.beats_left_reg != 0 && dut.beats_left_reg <= 7'd64);
        aligned : assert (dut.segment_reg.address[5:0] == 0);
        fits : assert ({2'b0, dut.segment_reg.address[11:0]} + {1'b0, left_bytes} <= 14'd4096);
      end
      to_the_end : cover (m_axi_arvalid && m_axi_arlen == Burst - 1 && m_axi_araddr[11:0] == 12'(4096 - 64 * Burst));
      split : cover (m_axi_arvalid && m_axi_arready && dut.busy_reg && $past(dut.busy_reg));
      short : cover (m_axi_arvalid && m_axi_arlen == 0);
    end
  end

endmodule : read_bursts_fv

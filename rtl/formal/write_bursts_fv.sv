// Proves of axi_write_engine: whatever segments, beats and records come, no burst crosses a multiple of 4 KiB, none is
// empty or longer than it may be, and what is asked stays until it is taken.
module write_bursts_fv
  import hostif_pkg::*;
(
    input logic         clk,
    input logic         rst,
    input logic         hold,
    input segment_t     s_segment,
    input logic         s_segment_valid,
    input logic [511:0] s_axis_tdata,
    input logic [63:0]  s_axis_tkeep,
    input logic         s_axis_tvalid,
    input physical_t    s_record_address,
    input logic [255:0] s_record,
    input logic         s_record_valid,
    input logic         m_axi_awready,
    input logic         m_axi_wready,
    input logic [1:0]   m_axi_bresp,
    input logic         m_axi_bvalid
);

  localparam int unsigned Burst = 4;

  logic         idle, s_segment_ready, s_axis_tready, s_record_ready, m_axi_awvalid, m_axi_wlast, m_axi_wvalid;
  logic         m_axi_bready, data_done, data_error, data_unmapped, record_done, record_error;
  physical_t    m_axi_awaddr;
  logic [7:0]   m_axi_awlen;
  logic [511:0] m_axi_wdata;
  logic [63:0]  m_axi_wstrb;

  axi_write_engine #(.BURST_BEATS(Burst), .LEAST_BEATS(2), .BUFFER_BEATS(8)) dut (.*);

  logic started_reg = 1'b0;
  wire [12:0] left_bytes = {dut.beats_left_reg, 6'd0};

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    // what the proof of the segmenter says
    assume (s_segment.bytes != 0);
    assume (s_segment.address[5:0] == 0);
    assume ({2'b0, s_segment.address[11:0]} + {1'b0, s_segment.bytes} <= 14'd4096);
    if (started_reg && $past(s_axis_tvalid && !s_axis_tready && !rst)) begin
      assume (s_axis_tvalid && $stable({s_axis_tdata, s_axis_tkeep}));
    end
    if (started_reg && $past(s_record_valid && !s_record_ready && !rst)) begin
      assume (s_record_valid && $stable({s_record_address, s_record}));
    end
    if (started_reg && !rst) begin
      if (m_axi_awvalid) begin
        in_one_block : assert ({2'b0, m_axi_awaddr[11:0]} + {6'(m_axi_awlen + 8'd1), 6'd0} <= 14'd4096);
        no_longer : assert (m_axi_awlen < Burst);
        on_a_beat : assert (m_axi_awaddr[5:0] == 0);
      end
      if ($past(m_axi_awvalid && !m_axi_awready && !rst)) begin
        stays : assert (m_axi_awvalid && $stable(m_axi_awaddr) && $stable(m_axi_awlen));
      end
      // what makes it inductive
      if (dut.busy_reg) begin
        some_left : assert (dut.beats_left_reg != 0 && dut.beats_left_reg <= 7'd64);
        aligned : assert (dut.segment_reg.address[5:0] == 0);
        fits : assert ({2'b0, dut.segment_reg.address[11:0]} + {1'b0, left_bytes} <= 14'd4096);
      end
      to_the_end : cover (m_axi_awvalid && m_axi_awlen == Burst - 1 && m_axi_awaddr[11:0] == 12'(4096 - 64 * Burst));
      split : cover (m_axi_awvalid && dut.busy_reg && $past(dut.busy_reg) && dut.beats_left_reg == 7'd1);
      a_record : cover (m_axi_awvalid && m_axi_awlen == 0 && dut.record_claimed_reg);
    end
  end

endmodule : write_bursts_fv

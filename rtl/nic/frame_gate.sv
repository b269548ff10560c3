// Stands between the MAC, which a soft reset does not touch, and the transport, which it cuts off anywhere: the gate
// ends a frame cut on its way out with a beat marked bad, and drops the rest of a frame that was coming in.
`include "ports.svh"

module frame_gate (
    input  logic         clk,
    // the reset of the MAC's side
    input  logic         rst,
    // the reset of the transport's side
    input  logic         core_rst,

    // transport -> MAC
    `AXIS_KEEP_IN_PORTS(s_axis_tx),
    // with tlast: do not send this frame, or spoil its FCS
    `AXIS_FRAME_OUT_PORTS(m_axis_tx),

    // MAC -> transport; data and keep need no gate
    input  logic         s_axis_rx_tlast,
    input  logic         s_axis_rx_tvalid,
    output logic         s_axis_rx_tready,
    output logic         m_axis_rx_tvalid,
    input  logic         m_axis_rx_tready,

    // high for a clock: a frame was cut
    output logic         cut
);

  // ---- out --------------------------------------------------------------------------------------------------
  logic inside_reg;   // of a frame, as far as beats were taken from the transport
  logic ending_reg;   // the beat that ends a cut frame is due
  logic move;

  assign move             = m_axis_tx_tready || !m_axis_tx_tvalid;
  assign s_axis_tx_tready = move && !ending_reg && !core_rst;

  wire takes = s_axis_tx_tvalid && s_axis_tx_tready;

  always_ff @(posedge clk) begin
    if (move) begin
      m_axis_tx_tdata <= s_axis_tx_tdata;
      m_axis_tx_tkeep <= ending_reg ? '1 : s_axis_tx_tkeep;
      m_axis_tx_tlast <= ending_reg || s_axis_tx_tlast;
      m_axis_tx_tuser <= ending_reg;
    end
    if (rst) begin
      m_axis_tx_tvalid <= 1'b0;
      inside_reg       <= 1'b0;
      ending_reg       <= 1'b0;
      cut              <= 1'b0;
    end else begin
      cut <= 1'b0;
      if (move) m_axis_tx_tvalid <= takes || ending_reg;
      if (takes) inside_reg <= !s_axis_tx_tlast;
      if (core_rst && inside_reg) begin
        inside_reg <= 1'b0;
        ending_reg <= 1'b1;
        cut        <= 1'b1;
      end else if (ending_reg && move) begin
        ending_reg <= 1'b0;
      end
    end
  end

  // ---- in ---------------------------------------------------------------------------------------------------
  logic middle_reg;  // the next beat is not a frame's first
  logic drop_reg;    // beats are dropped until the frame's end

  wire passes = s_axis_rx_tvalid && s_axis_rx_tready;
  wire middle = passes ? !s_axis_rx_tlast : middle_reg;

  assign m_axis_rx_tvalid = s_axis_rx_tvalid && !drop_reg && !core_rst;
  assign s_axis_rx_tready = m_axis_rx_tready || drop_reg || core_rst;

  always_ff @(posedge clk) begin
    if (rst) begin
      middle_reg <= 1'b0;
      drop_reg   <= 1'b0;
    end else begin
      middle_reg <= middle;
      if (core_rst) drop_reg <= middle;
      else if (!middle) drop_reg <= 1'b0;
    end
  end

endmodule : frame_gate

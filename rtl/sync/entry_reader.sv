// Reads of entries, one address each, as AXI4 bursts: neighbours are asked for together, never across 4 KiB.
`include "ports.svh"

module entry_reader #(
    parameter int unsigned ADDRESS_BITS = 32,
    // of the longest burst; a power of two, at most 64
    parameter int unsigned BURST_BEATS = 16
) (
    input  logic                    clk,
    input  logic                    rst,

    // in entries of 64 bytes
    input  logic                    s_valid,
    output logic                    s_ready,
    input  logic [ADDRESS_BITS-1:0] s_address,
    // in the order of the addresses; the owner has room for what it asks for
    output logic                    m_valid,
    output logic [511:0]            m_data,

    `AXI_READ_PORTS(m_axi),

    // one clock for each beat that memory refused
    output logic                    error
);

  localparam int unsigned BeatBits = $clog2(BURST_BEATS) + 1;

  logic                    held_reg;     // a burst is being put together
  logic [ADDRESS_BITS-1:0] first_reg;
  logic [ADDRESS_BITS-1:0] after_reg;    // the address behind it
  logic [BeatBits-1:0]     beats_reg;

  wire take = s_valid && s_ready;
  wire joins = held_reg && s_address == after_reg && after_reg[5:0] != '0 && beats_reg != BeatBits'(BURST_BEATS);
  wire issue = held_reg && (!m_axi_arvalid || m_axi_arready);

  // A burst leaves when no neighbour comes for it.
  assign s_ready = !held_reg || joins || issue;
  assign m_valid = m_axi_rvalid;
  assign m_data = m_axi_rdata;
  assign m_axi_rready = 1'b1;
  assign error = m_axi_rvalid && m_axi_rresp[1];

  always_ff @(posedge clk) begin
    if (take) begin
      after_reg <= s_address + 1'b1;
      if (!joins) begin
        first_reg <= s_address;
        beats_reg <= BeatBits'(1);
      end else begin
        beats_reg <= beats_reg + 1'b1;
      end
    end
    if (issue && !(take && joins)) begin
      m_axi_araddr <= 64'({first_reg, 6'd0});
      m_axi_arlen  <= 8'(beats_reg) - 8'd1;
    end
    if (rst) begin
      held_reg      <= 1'b0;
      m_axi_arvalid <= 1'b0;
    end else begin
      if (take) held_reg <= 1'b1;
      else if (issue) held_reg <= 1'b0;
      if (issue && !(take && joins)) m_axi_arvalid <= 1'b1;
      else if (m_axi_arready) m_axi_arvalid <= 1'b0;
    end
  end

  wire unused = &{1'b0, m_axi_rlast, m_axi_rresp[0]};

endmodule : entry_reader

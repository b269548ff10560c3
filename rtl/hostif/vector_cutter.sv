// Cuts a message of lanes or bytes into vectors of VECTOR_BYTES, the last one filled up with zeros.  The module is
// combinational but for the count of beats: it adds no clock.  A block-scaled message's vectors each wait for their scale,
// and announcements, vectors of zeros, leave before them.
`include "ports.svh"

module vector_cutter
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
  import transport_pkg::*;
#(
    // bytes of a vector, a multiple of 64
    parameter int unsigned VECTOR_BYTES = 256
) (
    input  logic              clk,
    input  logic              rst,

    // of the message that is here, while it is here
    input  data_type_t        dtype,
    input  logic signed [7:0] exponent,
    // of the message's last beat; 0: all of it
    input  logic [5:0]        end_bytes,
    // the message is block-scaled: `exponent` is void, and each vector takes a scale
    input  logic              block,

    input  vector_scale_t     s_scale,
    input  logic              s_scale_valid,
    output logic              s_scale_ready,

    // zero where a beat holds no data
    input  logic [511:0]      s_axis_tdata,
    input  logic              s_axis_tlast,
    // a value of this beat was cut or not finite
    input  logic              s_axis_tuser,
    input  logic              s_axis_tvalid,
    output logic              s_axis_tready,

    // the vector is an announcement
    output logic              announces,

    `AXIS_VECTOR_OUT_PORTS(m_axis, tx_meta_t)
);

  localparam int unsigned Beats = VECTOR_BYTES / 64;
  localparam int unsigned CountBits = Beats > 1 ? $clog2(Beats) : 1;

  if (VECTOR_BYTES < 64 || VECTOR_BYTES % 64 != 0) begin : gen_bad_vector
    $fatal(1, "vector_cutter: VECTOR_BYTES must be a multiple of 64");
  end

  logic [CountBits-1:0] beat_reg;
  logic                 filling_reg;  // the message has ended within this vector
  logic [15:0]          bytes_reg;    // that the vector holds, once it is filling
  logic [15:0]          bytes;

  wire ends  = beat_reg == CountBits'(Beats - 1);
  wire moves = m_axis_tvalid && m_axis_tready;

  assign bytes = filling_reg ? bytes_reg
               : s_axis_tlast && end_bytes != 6'd0 ? 16'({beat_reg, end_bytes})
               : 16'({beat_reg, 6'd0}) + 16'd64;

  wire scaled  = !block || s_scale_valid;

  assign announces     = block && s_scale_valid && s_scale.announces;
  assign s_scale_ready = block && moves && ends;
  assign m_axis_tvalid = scaled && (announces || filling_reg || s_axis_tvalid);
  assign m_axis_tdata  = announces || filling_reg ? '0 : s_axis_tdata;
  assign m_axis_tlast  = ends;
  assign s_axis_tready = m_axis_tready && scaled && !announces && !filling_reg;

  always_comb begin
    m_axis_tuser          = '0;
    m_axis_tuser.dtype    = dtype;
    m_axis_tuser.exp      = block ? s_scale.exponent : exponent;
    m_axis_tuser.next_exp = block ? s_scale.next_exp : 8'sd0;
    m_axis_tuser.expv     = block && s_scale.expv;
    m_axis_tuser.sat      = !filling_reg && !announces && s_axis_tuser;
    m_axis_tuser.last     = announces ? s_scale.last : filling_reg || s_axis_tlast;
    m_axis_tuser.bytes    = dtype == DATA_TYPE_BYTES ? bytes : 16'(VECTOR_BYTES);
  end

  always_ff @(posedge clk) begin
    if (moves && !filling_reg) bytes_reg <= bytes;
    if (rst) begin
      beat_reg    <= '0;
      filling_reg <= 1'b0;
    end else if (moves) begin
      beat_reg    <= ends ? '0 : beat_reg + 1'b1;
      filling_reg <= m_axis_tuser.last && !announces && !ends;
    end
  end

endmodule : vector_cutter

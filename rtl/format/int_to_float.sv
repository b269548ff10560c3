// Converts a stream of lanes to a stream of floats: 16 elements a clock, which are a beat of lanes, or half a packed one.
// A beat of lanes becomes one beat of 32-bit elements; two beats become one of 16-bit elements, the first in the low
// half, and an odd last one goes alone.  A beat of packed lanes becomes two beats of 32-bit elements, the second only if
// it holds one, or one beat of 16-bit elements.  Element 0 is in the low bits, and in a packed lane's high half.
module int_to_float
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // bits of a beat
    parameter int unsigned WIDTH = 512,
    // registers of a lane, 1..3
    parameter int unsigned STAGES = 3,
    // whether fp16, bf16 and packed lanes are supported; without, all is taken for fp32 in whole lanes
    parameter bit HALVES = 1'b1
) (
    input  logic               clk,
    input  logic               rst,

    input  logic [WIDTH-1:0]   s_axis_tdata,
    // whole lanes, of packed ones two bytes for each element; a message's beats are full but for the last
    input  logic [WIDTH/8-1:0] s_axis_tkeep,
    input  logic               s_axis_tlast,
    // how to convert; the same for a whole message
    input  format_t            s_axis_tuser,
    input  logic               s_axis_tvalid,
    output logic               s_axis_tready,

    // bytes that are not kept are zero
    output logic [WIDTH-1:0]   m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tlast,
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready
);

  localparam int unsigned Lanes = WIDTH / 32;
  localparam int unsigned Half = WIDTH / 2;

  if (WIDTH % 64 != 0) begin : gen_bad_width
    $fatal(1, "int_to_float: WIDTH must be a multiple of 64");
  end

  wire narrow = HALVES && (s_axis_tuser.dtype == DATA_TYPE_FP16 || s_axis_tuser.dtype == DATA_TYPE_BF16);
  wire pairs = HALVES && s_axis_tuser.pairs;

  // ---- spread: one beat of packed lanes is two groups of elements ----------------------------------------------
  logic             enable;
  logic             second_reg;  // the low half has gone
  logic [Half-1:0]  paired;      // the lanes whose turn it is
  logic [WIDTH-1:0] elements;    // a number in each lane
  logic [Lanes-1:0] kept;

  wire has_second = pairs && s_axis_tkeep[WIDTH/16];
  wire last_d = s_axis_tlast && (second_reg || !has_second);

  assign s_axis_tready = enable && (second_reg || !has_second);
  assign paired        = second_reg ? s_axis_tdata[Half+:Half] : s_axis_tdata[0+:Half];

  always_ff @(posedge clk) begin
    if (rst) second_reg <= 1'b0;
    else if (enable && s_axis_tvalid) second_reg <= has_second && !second_reg;
  end

  // q * 2^(E + h - 15) is what q * 2^15 is as a whole lane.
  for (genvar i = 0; i < Lanes; i++) begin : gen_element
    wire [15:0] half = paired[16*(i^1)+:16];

    assign elements[32*i+:32] = pairs ? {half[15], half, 15'd0} : s_axis_tdata[32*i+:32];
    assign kept[i]            = !pairs ? &s_axis_tkeep[4*i+:4]
                              : second_reg ? s_axis_tkeep[WIDTH/16+2*i] : s_axis_tkeep[2*i];
  end

  // ---- lanes -----------------------------------------------------------------------------------------------
  logic [Lanes-1:0] kept_q;
  logic             last_q;
  logic             narrow_q;
  logic             valid_q;
  logic             ready_q;
  logic [WIDTH-1:0] wide;    // an element in 32 bits
  logic [Half-1:0]  packed_half;

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    int_lane_to_float #(.STAGES(STAGES), .HALVES(HALVES)) convert (
        .clk,
        .enable,
        .lane(elements[32*i+:32]),
        .as(s_axis_tuser),
        .kept(kept[i]),
        .value(wide[32*i+:32])
    );

    assign packed_half[16*i+:16] = wide[32*i+:16];
  end

  stream_delay #(.WIDTH(Lanes + 2), .STAGES(STAGES)) delay (
      .clk,
      .rst,
      .s_data({kept, last_d, narrow}),
      .s_valid(s_axis_tvalid),
      .enable,
      .m_data({kept_q, last_q, narrow_q}),
      .m_valid(valid_q),
      .m_ready(ready_q)
  );

  // ---- gather: two beats of 16-bit elements are one -------------------------------------------------------
  logic [Half-1:0]  low_reg;
  logic             holding_reg;  // low_reg waits for the other half
  logic             complete;

  assign complete      = !narrow_q || holding_reg || last_q;
  assign m_axis_tvalid = valid_q && complete;
  assign ready_q       = m_axis_tready || !complete;
  assign m_axis_tlast  = last_q;

  always_comb begin
    if (!narrow_q) m_axis_tdata = wide;
    else if (holding_reg) m_axis_tdata = {packed_half, low_reg};
    else m_axis_tdata = {{Half{1'b0}}, packed_half};
    m_axis_tkeep = '0;
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (!narrow_q) begin
        m_axis_tkeep[4*i+:4] = {4{kept_q[i]}};
      end else begin
        m_axis_tkeep[2*i+:2]            = {2{holding_reg || kept_q[i]}};
        m_axis_tkeep[WIDTH/16+2*i+:2]   = {2{holding_reg && kept_q[i]}};
      end
    end
  end

  always_ff @(posedge clk) begin
    if (valid_q && ready_q) low_reg <= packed_half;
    if (rst) holding_reg <= 1'b0;
    else if (valid_q && ready_q) holding_reg <= !complete;
  end

  axis_check #(.WIDTH(WIDTH), .USER_WIDTH($bits(format_t))) check_s (
      .clk,
      .rst,
      .tdata(s_axis_tdata),
      .tkeep(s_axis_tkeep),
      .tlast(s_axis_tlast),
      .tuser(s_axis_tuser),
      .tvalid(s_axis_tvalid),
      .tready(s_axis_tready)
  );
  axis_check #(.WIDTH(WIDTH)) check_m (
      .clk,
      .rst,
      .tdata(m_axis_tdata),
      .tkeep(m_axis_tkeep),
      .tlast(m_axis_tlast),
      .tuser(1'b0),
      .tvalid(m_axis_tvalid),
      .tready(m_axis_tready)
  );

endmodule : int_to_float

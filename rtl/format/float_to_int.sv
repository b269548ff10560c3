// Converts a stream of floats to a stream of lanes: 16 elements a clock, which are a beat of lanes, or half a packed one.
// A beat of 32-bit elements becomes one beat; a beat of 16-bit elements becomes two, the low half first, and the second
// only if it holds an element.  In packed lanes two beats of 32-bit elements become one, a beat of 16-bit elements becomes
// one, and an odd half goes alone.  Element 0 is in the low bits, and in a packed lane's high half.
// LuWu, section 3.2: the conversion at the network's edge.
module float_to_int
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
    // whole elements
    input  logic [WIDTH/8-1:0] s_axis_tkeep,
    input  logic               s_axis_tlast,
    // how to convert this beat
    input  format_t            s_axis_tuser,
    input  logic               s_axis_tvalid,
    output logic               s_axis_tready,

    // the lanes of elements that are not kept are zero
    output logic [WIDTH-1:0]   m_axis_tdata,
    output logic [WIDTH/8-1:0] m_axis_tkeep,
    output logic               m_axis_tlast,
    // {which elements of the beat were cut, which of those were not finite}; only packed lanes have a second half of them
    output logic [WIDTH/8-1:0] m_axis_tuser,
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready
);

  localparam int unsigned Lanes = WIDTH / 32;
  localparam int unsigned Bytes = WIDTH / 8;
  localparam int unsigned Half = WIDTH / 2;

  if (WIDTH % 64 != 0) begin : gen_bad_width
    $fatal(1, "float_to_int: WIDTH must be a multiple of 64");
  end

  format_t as;

  always_comb begin
    as = s_axis_tuser;
    if (!HALVES && (as.dtype == DATA_TYPE_FP16 || as.dtype == DATA_TYPE_BF16)) as.dtype = DATA_TYPE_FP32;
    if (!HALVES) {as.pairs, as.full} = 2'b00;
  end

  // ---- spread: one beat of 16-bit elements is two --------------------------------------------------------
  logic             narrow;
  logic             second_reg;  // the low half has gone
  logic             has_second;
  logic             enable;
  logic             valid_d;
  logic             last_d;
  logic [WIDTH-1:0] elements;
  logic [Lanes-1:0] kept;

  assign narrow        = as.dtype == DATA_TYPE_FP16 || as.dtype == DATA_TYPE_BF16;
  assign has_second    = narrow && s_axis_tkeep[Bytes/2];
  assign s_axis_tready = enable && (second_reg || !has_second);
  assign valid_d       = s_axis_tvalid;
  assign last_d        = s_axis_tlast && (second_reg || !has_second);

  always_ff @(posedge clk) begin
    if (rst) second_reg <= 1'b0;
    else if (enable && s_axis_tvalid) second_reg <= has_second && !second_reg;
  end

  always_comb begin
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (narrow) begin
        elements[32*i+:32] = {16'b0, second_reg ? s_axis_tdata[WIDTH/2+16*i+:16] : s_axis_tdata[16*i+:16]};
        kept[i]            = second_reg ? s_axis_tkeep[Bytes/2+2*i] : s_axis_tkeep[2*i];
      end else begin
        elements[32*i+:32] = s_axis_tdata[32*i+:32];
        kept[i]            = s_axis_tkeep[4*i];
      end
    end
  end

  // ---- lanes -----------------------------------------------------------------------------------------------
  logic [Lanes-1:0] kept_q;
  logic [Lanes-1:0] saturated;
  logic [Lanes-1:0] nonfinite;
  logic             pairs_q;
  logic             last_q;
  logic             valid_q;
  logic             ready_q;
  logic [WIDTH-1:0] whole;  // a number in each lane
  logic [Half-1:0]  paired; // two
  logic [Lanes-1:0] paired_keep;  // of each half a lane

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    float_lane_to_int #(.STAGES(STAGES)) convert (
        .clk,
        .enable,
        .value(elements[32*i+:32]),
        .as,
        .kept(kept[i]),
        .lane(whole[32*i+:32]),
        .saturated(saturated[i]),
        .nonfinite(nonfinite[i])
    );

    // The first of two lies in the high half, and keeps the lane.
    assign paired[16*(i^1)+:16] = whole[32*i+:16];
    assign paired_keep[i]       = kept_q[i/2*2];
  end

  stream_delay #(.WIDTH(Lanes + 2), .STAGES(STAGES)) delay (
      .clk,
      .rst,
      .s_data({kept, last_d, as.pairs}),
      .s_valid(valid_d),
      .enable,
      .m_data({kept_q, last_q, pairs_q}),
      .m_valid(valid_q),
      .m_ready(ready_q)
  );

  // ---- gather: two groups of elements are a beat of packed lanes ----------------------------------------------
  typedef struct packed {
    logic [Half-1:0]  paired;
    logic [Lanes-1:0] saturated;
    logic [Lanes-1:0] nonfinite;
  } group_t;

  group_t low_reg;
  logic   holding_reg;  // low_reg waits for the other half
  logic   complete;

  assign complete      = !pairs_q || holding_reg || last_q;
  assign m_axis_tvalid = valid_q && complete;
  assign ready_q       = m_axis_tready || !complete;
  assign m_axis_tlast  = last_q;

  always_comb begin
    m_axis_tuser = {Lanes'(0), saturated, Lanes'(0), nonfinite};
    m_axis_tkeep = '0;
    if (holding_reg) begin
      m_axis_tdata = {paired, low_reg.paired};
      m_axis_tuser = {saturated, low_reg.saturated, nonfinite, low_reg.nonfinite};
    end else if (pairs_q) begin
      m_axis_tdata = {{Half{1'b0}}, paired};
    end else begin
      m_axis_tdata = whole;
    end
    for (int unsigned i = 0; i < Lanes; i++) begin
      if (!pairs_q) begin
        m_axis_tkeep[4*i+:4] = {4{kept_q[i]}};
      end else begin
        m_axis_tkeep[2*i+:2]         = {2{holding_reg || paired_keep[i]}};
        m_axis_tkeep[Bytes/2+2*i+:2] = {2{holding_reg && paired_keep[i]}};
      end
    end
  end

  always_ff @(posedge clk) begin
    if (valid_q && ready_q) low_reg <= {paired, saturated, nonfinite};
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
  axis_check #(.WIDTH(WIDTH), .USER_WIDTH(4 * Lanes)) check_m (
      .clk,
      .rst,
      .tdata(m_axis_tdata),
      .tkeep(m_axis_tkeep),
      .tlast(m_axis_tlast),
      .tuser(m_axis_tuser),
      .tvalid(m_axis_tvalid),
      .tready(m_axis_tready)
  );

endmodule : float_to_int

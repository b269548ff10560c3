// Converts a stream of floats to a stream of lanes: a whole beat of lanes a clock.
// A beat of 32-bit elements becomes one beat; a beat of 16-bit elements becomes two, the low half first, and the second
// only if it holds an element.  Element 0 is in the low bits.  LuWu, section 3.2: the conversion at the network's edge.
module float_to_int
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // bits of a beat
    parameter int unsigned WIDTH = 512,
    // registers of a lane, 1..3
    parameter int unsigned STAGES = 3,
    // whether fp16 and bf16 are supported; without, they are taken for fp32
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
    // {which lanes were cut, which of those were not finite}
    output logic [WIDTH/16-1:0] m_axis_tuser,
    output logic               m_axis_tvalid,
    input  logic               m_axis_tready
);

  localparam int unsigned Lanes = WIDTH / 32;
  localparam int unsigned Bytes = WIDTH / 8;

  if (WIDTH % 64 != 0) begin : gen_bad_width
    $fatal(1, "float_to_int: WIDTH must be a multiple of 64");
  end

  format_t as;

  always_comb begin
    as = s_axis_tuser;
    if (!HALVES && (as.dtype == DATA_TYPE_FP16 || as.dtype == DATA_TYPE_BF16)) as.dtype = DATA_TYPE_FP32;
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

  for (genvar i = 0; i < Lanes; i++) begin : gen_lane
    float_lane_to_int #(.STAGES(STAGES)) convert (
        .clk,
        .enable,
        .value(elements[32*i+:32]),
        .as,
        .kept(kept[i]),
        .lane(m_axis_tdata[32*i+:32]),
        .saturated(saturated[i]),
        .nonfinite(nonfinite[i])
    );

    assign m_axis_tkeep[4*i+:4] = {4{kept_q[i]}};
  end

  assign m_axis_tuser = {saturated, nonfinite};

  stream_delay #(.WIDTH(Lanes + 1), .STAGES(STAGES)) delay (
      .clk,
      .rst,
      .s_data({kept, last_d}),
      .s_valid(valid_d),
      .enable,
      .m_data({kept_q, m_axis_tlast}),
      .m_valid(m_axis_tvalid),
      .m_ready(m_axis_tready)
  );

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
  axis_check #(.WIDTH(WIDTH), .USER_WIDTH(2 * Lanes)) check_m (
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

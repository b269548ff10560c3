// One lane: a float to the int32 that the switch adds (docs/protocol.md, "Numbers").
//   q = round_half_even(x * 2^(30 - h - E)), cut to [-2^(30-h), 2^(30-h)]
// One value a clock, STAGES registers deep.  INT32 passes through untouched.
module float_lane_to_int
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // 1..3
    parameter int unsigned STAGES = 3
) (
    input  logic        clk,
    // holds every stage when low
    input  logic        enable,

    input  logic [31:0] value,
    input  format_t     as,

    output logic [31:0] lane,
    // the value was cut, or is infinite or NaN
    output logic        saturated,
    output logic        nonfinite
);

  if (STAGES < 1 || STAGES > MaxStages) begin : gen_bad_stages
    $fatal(1, "float_lane_to_int: STAGES must be 1..3");
  end
  localparam logic [MaxStages-1:0] Cuts = cuts(STAGES);

  // ---- unpack; how far the significand moves ------------------------------------------------------
  typedef struct packed {
    logic                    sign;
    logic                    special;
    logic                    integer_lane;
    logic [HeadroomBits-1:0] headroom;
    logic [31:0]             value;  // the significand in its low bits, or the integer
    logic [5:0]              shift;
  } unpacked_t;

  // fp16's smallest number has its one in bit 13: moved left by 18 it is beyond the largest lane.  A significand below
  // 2^24 that moves right by 26 rounds to zero.
  localparam logic signed [10:0] MostLeft = 11'sd18;
  localparam logic signed [10:0] MostRight = -11'sd26;

  logic               sign;
  logic [23:0]        significand;
  logic [7:0]         exponent;
  logic               special;
  logic signed [10:0] left;  // exponent - 150 + 30 - h - E
  unpacked_t          unpacked_d;
  unpacked_t          unpacked_q;

  float_unpack unpack (
      .value,
      .dtype(as.dtype),
      .sign,
      .significand,
      .exponent,
      .nonfinite(special)
  );

  assign left = $signed({3'b0, exponent}) - 11'sd120 - $signed({8'b0, as.headroom}) - 11'(as.exponent);

  always_comb begin
    unpacked_d.integer_lane = as.dtype == DATA_TYPE_INT32;
    unpacked_d.sign         = sign;
    unpacked_d.special      = special && !unpacked_d.integer_lane;
    unpacked_d.headroom     = as.headroom;
    unpacked_d.value        = unpacked_d.integer_lane ? value : {8'b0, significand};
    unpacked_d.shift        = left > MostLeft ? 6'(MostLeft - MostRight)
                            : left < MostRight ? 6'd0
                            : 6'(left - MostRight);
  end

  pipeline_stage #(.WIDTH($bits(unpacked_t)), .PRESENT(Cuts[0])) after_unpack (
      .clk, .enable, .d(unpacked_d), .q(unpacked_q)
  );

  // ---- shift; 26 bits below the point keep the half and what is sticky --------------------------------
  typedef struct packed {
    logic                    sign;
    logic                    beyond;  // larger than any lane, or not finite
    logic                    special;
    logic                    integer_lane;
    logic [HeadroomBits-1:0] headroom;
    logic [31:0]             whole;
    logic                    half;
    logic                    sticky;
  } shifted_t;

  logic [67:0] moved;
  shifted_t    shifted_d;
  shifted_t    shifted_q;

  assign moved = {44'b0, unpacked_q.value[23:0]} << unpacked_q.shift;

  always_comb begin
    shifted_d.sign         = unpacked_q.sign;
    shifted_d.special      = unpacked_q.special;
    shifted_d.integer_lane = unpacked_q.integer_lane;
    shifted_d.headroom     = unpacked_q.headroom;
    shifted_d.beyond       = unpacked_q.special || |moved[67:58];
    shifted_d.whole        = unpacked_q.integer_lane ? unpacked_q.value : moved[57:26];
    shifted_d.half         = moved[25];
    shifted_d.sticky       = |moved[24:0];
  end

  pipeline_stage #(.WIDTH($bits(shifted_t)), .PRESENT(Cuts[1])) after_shift (
      .clk, .enable, .d(shifted_d), .q(shifted_q)
  );

  // ---- round half to even, cut, sign ------------------------------------------------------------------
  logic [32:0] rounded;
  logic [31:0] limit;
  logic        cut;
  logic [31:0] magnitude;
  logic [31:0] lane_d;

  assign rounded   = {1'b0, shifted_q.whole} + 33'(shifted_q.half && (shifted_q.sticky || shifted_q.whole[0]));
  assign limit     = 32'd1 << (5'd30 - 5'(shifted_q.headroom));
  assign cut       = shifted_q.beyond || rounded > {1'b0, limit};
  assign magnitude = cut ? limit : rounded[31:0];
  assign lane_d    = shifted_q.integer_lane ? shifted_q.whole : shifted_q.sign ? -magnitude : magnitude;

  pipeline_stage #(.WIDTH(34), .PRESENT(Cuts[2])) after_round (
      .clk,
      .enable,
      .d({lane_d, cut && !shifted_q.integer_lane, shifted_q.special}),
      .q({lane, saturated, nonfinite})
  );

endmodule : float_lane_to_int

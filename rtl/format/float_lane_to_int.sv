// Converts one lane: a float to the int32 that the switch adds (docs/explanation/protocol.md, "Numbers").
//   q = round_half_even(x * 2^(30 - h - E)), cut to [-2^(30-h), 2^(30-h)]
// or, for packed lanes, to the int16 of half a lane, in the low half (docs/explanation/packed-lanes.md).
//   q = round_half_even(x * 2^(15 - h - E)), cut to [-m, m]; m is 2^(15-h), or one less if the workers are 2^h
// One value a clock, STAGES registers deep.  INT32 passes through untouched.
module float_lane_to_int
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // number of registers in the lane's pipeline, 1..3
    parameter int unsigned STAGES = 3
) (
    input  logic        clk,
    // every stage keeps its value while this is low
    input  logic        enable,

    input  logic [31:0] value,
    input  format_t     as,
    // low: the lane comes out as zero, and nothing is flagged
    input  logic        kept,

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
    logic                    kept;
    logic                    sign;
    logic                    special;
    logic                    integer_lane;
    logic [4:0]              place;  // of the largest number's bit
    logic                    pairs;
    logic                    full;
    logic [31:0]             value;  // the significand in its low bits, or the integer
    logic signed [9:0]       shift;  // to the left, from 26 places to the right on
  } unpacked_t;

  // A significand below 2^24 that moves right by 26 or more rounds to zero.
  localparam logic signed [9:0] MostRight = 10'sd26;

  logic              sign;
  logic [23:0]       significand;
  logic [7:0]        exponent;
  logic              special;
  logic signed [9:0] origin;  // the same for all lanes of a beat, so there once
  logic              integer_lane;
  unpacked_t         unpacked_d;
  unpacked_t         unpacked_q;

  float_unpack unpack (
      .value,
      .dtype(as.dtype),
      .sign,
      .significand,
      .exponent,
      .nonfinite(special)
  );

  assign integer_lane = as.dtype == DATA_TYPE_INT32;
  // 150 - 30 + h + E, 15 more for packed lanes, less what `shift` begins with
  assign origin       = (as.pairs ? 10'sd135 : 10'sd120) - MostRight + $signed({7'b0, as.headroom}) + 10'(as.exponent);

  always_comb begin
    unpacked_d.kept         = kept;
    unpacked_d.integer_lane = integer_lane;
    unpacked_d.sign         = sign && !integer_lane;
    unpacked_d.special      = special && !integer_lane;
    unpacked_d.place        = (as.pairs ? 5'd15 : 5'd30) - 5'(as.headroom);
    unpacked_d.pairs        = as.pairs;
    unpacked_d.full         = as.full;
    unpacked_d.value        = integer_lane ? value : {8'b0, significand};
    unpacked_d.shift        = $signed({2'b0, exponent}) - origin;
  end

  pipeline_stage #(.WIDTH($bits(unpacked_t)), .PRESENT(Cuts[0])) after_unpack (
      .clk, .enable, .d(unpacked_d), .q(unpacked_q)
  );

  // ---- shift, small steps first so that the words stay narrow ------------------------------------------
  // The half lies below `whole`, and 25 bits that are only sticky below that.
  typedef struct packed {
    logic                    kept;
    logic                    sign;
    logic                    beyond;  // larger than any lane, or not finite
    logic                    special;
    logic                    integer_lane;
    logic [4:0]              place;
    logic                    pairs;
    logic                    full;
    logic [31:0]             whole;
    logic                    half;
    logic                    sticky;
  } shifted_t;

  // fp16's smallest number has its one in bit 13: moved by more than 44 it is beyond the largest lane.
  localparam logic signed [9:0] MostLeft = 10'sd44;

  logic [26:0] by_ones;
  logic [38:0] by_fours;
  shifted_t    shifted_d;
  shifted_t    shifted_q;

  assign by_ones  = {3'b0, unpacked_q.value[23:0]} << unpacked_q.shift[1:0];
  assign by_fours = {12'b0, by_ones} << {unpacked_q.shift[3:2], 2'b0};

  always_comb begin
    shifted_d.kept         = unpacked_q.kept;
    shifted_d.sign         = unpacked_q.sign;
    shifted_d.special      = unpacked_q.special;
    shifted_d.integer_lane = unpacked_q.integer_lane;
    shifted_d.place        = unpacked_q.place;
    shifted_d.pairs        = unpacked_q.pairs;
    shifted_d.full         = unpacked_q.full;
    shifted_d.beyond       = unpacked_q.special;
    if (unpacked_q.integer_lane) begin
      {shifted_d.whole, shifted_d.half, shifted_d.sticky} = {unpacked_q.value, 2'b0};
    end else if (unpacked_q.shift < 0) begin
      {shifted_d.whole, shifted_d.half, shifted_d.sticky} = '0;
    end else if (unpacked_q.shift > MostLeft) begin
      {shifted_d.whole, shifted_d.half, shifted_d.sticky} = '0;
      shifted_d.beyond = unpacked_q.special || |by_fours;
    end else unique case (unpacked_q.shift[5:4])
      2'd0: {shifted_d.whole, shifted_d.half, shifted_d.sticky} = {19'b0, by_fours[38:25], |by_fours[24:0]};
      2'd1: {shifted_d.whole, shifted_d.half, shifted_d.sticky} = {3'b0, by_fours[38:9], |by_fours[8:0]};
      default: begin
        {shifted_d.whole, shifted_d.half, shifted_d.sticky} = {by_fours[25:0], 8'b0};
        shifted_d.beyond = unpacked_q.special || |by_fours[38:26];
      end
    endcase
  end

  pipeline_stage #(.WIDTH($bits(shifted_t)), .PRESENT(Cuts[1])) after_shift (
      .clk, .enable, .d(shifted_d), .q(shifted_q)
  );

  // ---- cut, round half to even, sign: one adder, since -(w + up) is ~w + !up --------------------------------
  // A limit of 2^23 and more has no bits below the point: rounding never carries a whole lane over it.  Half a lane's may be
  // carried over it, and is cut then; one that is m or more without that ends at m and is not cut.
  logic [31:0] limit;
  logic [31:0] beneath;  // mask
  logic        at;
  logic        cut;
  logic        ends;
  logic        up;
  logic [31:0] magnitude;
  logic [32:0] sum;
  logic        saturated_reg;
  logic        nonfinite_reg;
  logic [31:0] lane_reg;

  assign limit     = 32'd1 << shifted_q.place;
  assign beneath   = limit - 32'd1;
  assign at        = |(shifted_q.whole & limit);
  assign cut       = !shifted_q.integer_lane
                     && (shifted_q.beyond || |(shifted_q.whole & ~(limit | beneath))
                         || (at && (|(shifted_q.whole & beneath) || (shifted_q.half && shifted_q.sticky))));
  assign ends      = cut || (shifted_q.pairs && (at || (shifted_q.full && (shifted_q.whole | ~beneath) == '1)));
  assign up        = shifted_q.half && (shifted_q.sticky || shifted_q.whole[0]) && !ends;
  assign magnitude = !ends ? shifted_q.whole : shifted_q.pairs && shifted_q.full ? beneath : limit;
  assign sum       = {magnitude ^ {32{shifted_q.sign}}, 1'b1} + {32'b0, shifted_q.sign ^ up};

  // Every depth has this register, and a lane that is not kept is its reset.
  always_ff @(posedge clk) begin
    if (enable) begin
      lane_reg      <= sum[32:1];
      saturated_reg <= cut;
      nonfinite_reg <= shifted_q.special;
      if (!shifted_q.kept) begin
        lane_reg      <= 32'd0;
        saturated_reg <= 1'b0;
        nonfinite_reg <= 1'b0;
      end
    end
  end

  assign lane      = lane_reg;
  assign saturated = saturated_reg;
  assign nonfinite = nonfinite_reg;

  wire unused = &{1'b0, sum[0], Cuts[2]};

endmodule : float_lane_to_int

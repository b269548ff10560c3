// One lane back: q * 2^(E + h - 30), rounded once, half to even, to fp32, fp16 or bf16 (docs/protocol.md, "Numbers").
// Beyond the largest number is an infinity; denormals are kept; zero is +0.  One lane a clock, STAGES registers deep.
module int_lane_to_float
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // 1..3
    parameter int unsigned STAGES = 3
) (
    input  logic        clk,
    // holds every stage when low
    input  logic        enable,

    input  logic [31:0] lane,
    input  format_t     as,
    // low: the value comes out as zero
    input  logic        kept,

    // fp16 and bf16 in the low half
    output logic [31:0] value
);

  if (STAGES < 1 || STAGES > MaxStages) begin : gen_bad_stages
    $fatal(1, "int_lane_to_float: STAGES must be 1..3");
  end
  localparam logic [MaxStages-1:0] Cuts = cuts(STAGES);

  // A negative lane goes as ~lane, one less than its magnitude: with ones following it for ever it is the magnitude, so
  // ones are shifted in, and the rounding sees to the rest.  A normal number moves left until its leading one is in bit
  // 31, a denormal as far as the smallest exponent lets it (`most`, for all lanes the same), which may be to the right.

  // ---- by 16 -------------------------------------------------------------------------------------------
  typedef struct packed {
    data_type_t        dtype;
    logic              cleared;  // zero, or not kept
    logic              negative;
    logic              lost;     // right by 16 or 1: something fell off
    logic signed [9:0] most;
    logic              by_16;
    logic [3:0]        further;  // most that it may move on
    logic [31:0]       bits;
  } coarse_t;

  logic              integer_lane;
  logic              fp16;
  logic              negative;
  logic signed [9:0] most;
  logic              tiny;     // the smallest exponent lies above what the lane's highest bit stands for
  logic              by_16;
  logic [31:0]       signed_bits;
  coarse_t           coarse_d;
  coarse_t           coarse_q;

  assign integer_lane = as.dtype == DATA_TYPE_INT32;
  assign fp16         = as.dtype == DATA_TYPE_FP16;
  assign negative     = lane[31] && !integer_lane;
  assign most         = 10'(as.exponent) + $signed({7'b0, as.headroom}) + (fp16 ? 10'sd15 : 10'sd127);
  assign tiny         = most < 0 && !integer_lane;
  assign by_16        = !integer_lane && lane[31:16] == {16{lane[31]}} && most >= 10'sd16;

  always_comb begin
    // fp16's need its 11 highest bits only, and at 2^-14 and below a whole range of exponents; the others' most is -1.
    if (tiny) signed_bits = fp16 ? {{16{lane[31]}}, lane[31:16]} : {lane[31], lane[31:1]};
    else signed_bits = by_16 ? {lane[15:0], 16'b0} : lane;

    coarse_d.dtype    = as.dtype;
    coarse_d.cleared  = lane == 32'd0 || !kept;
    coarse_d.negative = negative;
    coarse_d.lost     = tiny && (fp16 ? |lane[15:0] : lane[0]);
    coarse_d.most     = tiny ? 10'sd0 : most;
    coarse_d.by_16    = by_16;
    coarse_d.bits     = signed_bits ^ {32{negative}};
    if (integer_lane) coarse_d.further = 4'd0;
    else if (tiny) coarse_d.further = fp16 && most > -10'sd16 ? most[3:0] : 4'd0;
    else if (by_16) coarse_d.further = most >= 10'sd31 ? 4'd15 : most[3:0];
    else coarse_d.further = most >= 10'sd15 ? 4'd15 : most[3:0];
  end

  pipeline_stage #(.WIDTH($bits(coarse_t)), .PRESENT(Cuts[0])) after_coarse (
      .clk, .enable, .d(coarse_d), .q(coarse_q)
  );

  // ---- by fours, by ones ---------------------------------------------------------------------------------
  typedef struct packed {
    data_type_t  dtype;
    logic        cleared;
    logic        negative;
    logic        lost;
    logic [7:0]  field;  // exponent field, less the leading one's share
    logic        over;   // beyond the largest number
    logic [31:0] bits;
  } normal_t;

  logic [1:0]  fours;
  logic [1:0]  ones;
  logic [1:0]  zeros;  // leading ones of four, 3 also for none
  logic [31:0] by_fours;
  logic [31:0] by_ones;
  logic [9:0]  place;  // negative when a right shift stepped back to the left
  normal_t     normal_d;
  normal_t     normal_q;

  always_comb begin
    if (|coarse_q.bits[31:28]) fours = 2'd0;
    else if (|coarse_q.bits[27:24]) fours = 2'd1;
    else if (|coarse_q.bits[23:20]) fours = 2'd2;
    else fours = 2'd3;
    if (fours > coarse_q.further[3:2]) fours = coarse_q.further[3:2];

    unique case (fours)
      2'd0: by_fours = coarse_q.bits;
      2'd1: by_fours = {coarse_q.bits[27:0], {4{coarse_q.negative}}};
      2'd2: by_fours = {coarse_q.bits[23:0], {8{coarse_q.negative}}};
      default: by_fours = {coarse_q.bits[19:0], {12{coarse_q.negative}}};
    endcase

    if (by_fours[31]) zeros = 2'd0;
    else if (by_fours[30]) zeros = 2'd1;
    else if (by_fours[29]) zeros = 2'd2;
    else zeros = 2'd3;
    ones = fours == coarse_q.further[3:2] && zeros > coarse_q.further[1:0] ? coarse_q.further[1:0] : zeros;

    unique case (ones)
      2'd0: by_ones = by_fours;
      2'd1: by_ones = {by_fours[30:0], coarse_q.negative};
      2'd2: by_ones = {by_fours[29:0], {2{coarse_q.negative}}};
      default: by_ones = {by_fours[28:0], {3{coarse_q.negative}}};
    endcase
  end

  assign place = coarse_q.most - {5'b0, coarse_q.by_16, fours, ones};

  always_comb begin
    normal_d.bits     = by_ones;
    normal_d.dtype    = coarse_q.dtype;
    normal_d.cleared  = coarse_q.cleared;
    normal_d.negative = coarse_q.negative;
    normal_d.lost     = coarse_q.lost;
    normal_d.field    = place[9] ? 8'd0 : place[7:0];
    normal_d.over     = !place[9] && place >= (coarse_q.dtype == DATA_TYPE_FP16 ? 10'd30 : 10'd254);
  end

  pipeline_stage #(.WIDTH($bits(normal_t)), .PRESENT(Cuts[1])) after_normalize (
      .clk, .enable, .d(normal_d), .q(normal_q)
  );

  // ---- round in the place where the number ends up; the leading one counts one exponent, and so does a carry ------------
  logic        last;      // last bit that is kept
  logic        half;
  logic        rest;      // something below, the sign taken off
  logic        up;
  logic        leading;
  logic [31:0] number;
  logic [31:0] leading_at;
  logic [32:0] sum;
  logic [31:0] tail;
  logic [31:0] value_reg;

  always_comb begin
    tail    = normal_q.bits ^ {32{normal_q.negative}};
    leading = normal_q.bits[31] && !normal_q.over;
    last    = 1'b0;
    half    = 1'b0;
    rest    = normal_q.lost;
    leading_at = 32'd0;
    unique case (normal_q.dtype)
      DATA_TYPE_INT32: number = normal_q.bits;
      DATA_TYPE_FP16: begin
        last           = normal_q.bits[21];
        half           = normal_q.bits[20];
        rest           = normal_q.lost || |tail[19:0];
        leading_at[10] = leading;
        number         = {16'b0, normal_q.negative, normal_q.over ? 15'h7c00 : {normal_q.field[4:0], normal_q.bits[30:21]}};
      end
      DATA_TYPE_BF16: begin
        last          = normal_q.bits[24];
        half          = normal_q.bits[23];
        rest          = normal_q.lost || |tail[22:0];
        leading_at[7] = leading;
        number        = {16'b0, normal_q.negative, normal_q.over ? 15'h7f80 : {normal_q.field[7:0], normal_q.bits[30:24]}};
      end
      default: begin
        last           = normal_q.bits[8];
        half           = normal_q.bits[7];
        rest           = normal_q.lost || |tail[6:0];
        leading_at[23] = leading;
        number         = {normal_q.negative, normal_q.over ? 31'h7f80_0000 : {normal_q.field[7:0], normal_q.bits[30:8]}};
      end
    endcase
    up  = !normal_q.over && (normal_q.negative ? half || (last && !rest) : half && (last || rest));
    sum = {number, 1'b1} + {leading_at, up};
  end

  // Every depth has this register, and zero is its reset.
  always_ff @(posedge clk) begin
    if (enable) value_reg <= normal_q.cleared ? 32'd0 : sum[32:1];
  end

  assign value = value_reg;

  wire unused = &{1'b0, sum[0], Cuts[2], tail[31:23]};

endmodule : int_lane_to_float

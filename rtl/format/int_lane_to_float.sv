// Converts one lane back: q * 2^(E + h - 30), rounded once, half to even, to fp32, fp16 or bf16 (docs/explanation/protocol.md,
// "Numbers").  Beyond the largest number is an infinity; denormals are kept; zero is +0.  One lane a clock,
// STAGES registers deep.
module int_lane_to_float
  import catchment_wire_pkg::*;
  import format_pkg::*;
#(
    // number of registers in the lane's pipeline, 1..3
    parameter int unsigned STAGES = 3,
    // whether fp16 and bf16 are supported; without, they are taken for fp32
    parameter bit HALVES = 1'b1
) (
    input  logic        clk,
    // every stage keeps its value while this is low
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
  // An integer moves left by 8, into the place of a fraction; its nine highest bits go beside it.

  // ---- by 16 -------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        integer_lane;
    logic        fp16;
    logic        bf16;
    logic        kept;
    logic        negative;
    logic        lost;   // right by 16 or 1: something fell off
    logic        hidden; // fp16 to the right by 16: the place is no exponent
    logic [8:0]  top;    // exponent field of what does not move, less the leading one's share
    logic [4:0]  room;   // most that a lane may move, up to 31
    logic        by_16;
    logic [31:0] bits;
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
  assign fp16         = HALVES && as.dtype == DATA_TYPE_FP16;
  assign negative     = lane[31] && !integer_lane;
  assign most         = 10'(as.exponent) + $signed({7'b0, as.headroom}) + (fp16 ? 10'sd15 : 10'sd127);
  assign tiny         = most < 0 && !integer_lane;
  assign by_16        = lane[31:16] == {16{lane[31]}} && (!integer_lane && most >= 10'sd16);

  always_comb begin
    // fp16's need its 11 highest bits only, and at 2^-14 and below a whole range of exponents; the others' most is -1.
    if (tiny) signed_bits = fp16 ? {{16{lane[31]}}, lane[31:16]} : {lane[31], lane[31:1]};
    else signed_bits = by_16 ? {lane[15:0], 16'b0} : lane;

    coarse_d.integer_lane = integer_lane;
    coarse_d.fp16     = fp16;
    coarse_d.bf16     = HALVES && as.dtype == DATA_TYPE_BF16;
    coarse_d.kept     = kept;
    coarse_d.negative = negative;
    coarse_d.lost     = tiny && (fp16 ? |lane[15:0] : lane[0]);
    coarse_d.hidden   = tiny && fp16;
    coarse_d.top      = tiny ? 9'd0 : most[8:0];
    coarse_d.by_16    = by_16;
    coarse_d.bits     = signed_bits ^ {32{negative}};
    if (integer_lane) coarse_d.room = 5'd8;
    else if (tiny) coarse_d.room = fp16 && most > -10'sd16 ? {1'b0, most[3:0]} : 5'd0;
    else coarse_d.room = most >= 10'sd31 ? 5'd31 : most[4:0];
  end

  pipeline_stage #(.WIDTH($bits(coarse_t)), .PRESENT(Cuts[0])) after_coarse (
      .clk, .enable, .d(coarse_d), .q(coarse_q)
  );

  // ---- by fours, by ones ---------------------------------------------------------------------------------
  typedef struct packed {
    logic        integer_lane;
    logic        fp16;
    logic        bf16;
    logic        kept;
    logic        negative;
    logic [8:0]  integer_top;
    logic        hidden;
    logic [8:0]  field;   // exponent field, less the leading one's share
    logic [24:0] bits;    // 31..7
    logic        sticky;  // something below those, the sign taken off
  } normal_t;

  logic        beyond_16; // has moved by 16 or need not, so nothing keeps it from moving by 15
  logic [1:0]  fours;
  logic [1:0]  fours_room;
  logic [1:0]  ones;
  logic [1:0]  ones_room;
  logic [1:0]  zeros;  // leading ones of four, 3 also for none
  logic [31:4] by_fours;  // of the lowest four only `low_left` is of interest
  logic [31:7] by_ones;
  logic        low_left;  // one of the four lowest bits of by_fours is set
  normal_t     normal_d;
  normal_t     normal_q;

  always_comb begin
    beyond_16  = coarse_q.room[4] && !coarse_q.by_16;
    fours_room = coarse_q.room[3:2] | {2{beyond_16}};
    if (|coarse_q.bits[31:28] && !coarse_q.integer_lane) fours = 2'd0;
    else if (|coarse_q.bits[27:24] && !coarse_q.integer_lane) fours = 2'd1;
    else if (|coarse_q.bits[23:20]) fours = 2'd2;
    else fours = 2'd3;
    if (fours > fours_room) fours = fours_room;

    by_fours = fours[1] ? fours[0] ? {coarse_q.bits[19:0], {8{coarse_q.negative}}}
                                   : {coarse_q.bits[23:0], {4{coarse_q.negative}}}
             : fours[0] ? coarse_q.bits[27:0] : coarse_q.bits[31:4];

    if (by_fours[31]) zeros = 2'd0;
    else if (by_fours[30]) zeros = 2'd1;
    else if (by_fours[29]) zeros = 2'd2;
    else zeros = 2'd3;
    ones_room = fours == fours_room ? coarse_q.room[1:0] | {2{beyond_16}} : 2'd3;
    ones      = zeros > ones_room ? ones_room : zeros;

    by_ones = ones[1] ? ones[0] ? by_fours[28:4] : by_fours[29:5] : ones[0] ? by_fours[30:6] : by_fours[31:7];

    // What was shifted in is no remainder.
    low_left = fours == 2'd0 && coarse_q.bits[3:0] != {4{coarse_q.negative}};
  end

  always_comb begin
    normal_d.integer_lane = coarse_q.integer_lane;
    normal_d.fp16        = coarse_q.fp16;
    normal_d.bf16        = coarse_q.bf16;
    normal_d.kept        = coarse_q.kept;
    normal_d.negative    = coarse_q.negative;
    normal_d.hidden      = coarse_q.hidden;
    normal_d.integer_top = coarse_q.bits[31:23];
    normal_d.field       = coarse_q.top - {4'b0, coarse_q.by_16, fours, ones};
    normal_d.bits        = by_ones;
    normal_d.sticky      = coarse_q.lost || low_left || (ones == 2'd0 && by_fours[6] != coarse_q.negative)
                           || (!ones[1] && by_fours[5] != coarse_q.negative)
                           || (ones != 2'd3 && by_fours[4] != coarse_q.negative);
  end

  pipeline_stage #(.WIDTH($bits(normal_t)), .PRESENT(Cuts[1])) after_normalize (
      .clk, .enable, .d(normal_d), .q(normal_q)
  );

  // ---- round in the place where the number ends up; the leading one counts one exponent, and so does a carry ------------
  // Without a leading one a number is a denormal, whose place is 0, or a -1 that moved by 31, or zero.
  logic        leading;
  logic        placed;    // the place is an exponent
  logic        over;      // beyond the largest number: all ones, then zeros
  logic [7:0]  field;
  logic [31:7] bits;
  logic [22:7] tail;      // the sign taken off
  logic        last;      // last bit that is kept
  logic        half;
  logic        rest;
  logic        up;
  logic        infinite;  // as fp32
  logic [31:0] number;
  logic [31:0] leading_at;
  logic [32:0] sum;
  logic [31:0] value_reg;

  always_comb begin
    bits       = normal_q.bits;
    leading    = bits[31] && !normal_q.integer_lane;
    placed     = leading || (normal_q.negative && !normal_q.hidden);
    over       = placed && (normal_q.fp16 ? |normal_q.field[8:5] || &normal_q.field[4:1]
                                                              : normal_q.field[8] || &normal_q.field[7:1]);
    field      = over ? 8'hff : placed ? normal_q.field[7:0] : 8'h00;
    leading_at = 32'd0;
    tail       = bits[22:7] ^ {16{normal_q.negative}};
    infinite   = 1'b0;
    if (normal_q.fp16) begin
      last   = bits[21];
      half   = bits[20];
      rest   = normal_q.sticky || |tail[19:7];
      number = {16'b0, normal_q.negative, field[4:0], bits[30:21] & ~{10{over}}};
      leading_at[10] = leading && !over;
    end else if (normal_q.bf16) begin
      last   = bits[24];
      half   = bits[23];
      rest   = normal_q.sticky || |tail[22:7];
      number = {16'b0, normal_q.negative, field, bits[30:24] & ~{7{over}}};
      leading_at[7] = leading && !over;
    end else begin
      last     = bits[8];
      half     = bits[7];
      rest     = normal_q.sticky;
      infinite = over;
      number   = {normal_q.integer_lane ? normal_q.integer_top : {normal_q.negative, field}, bits[30:8]};
      leading_at[23] = leading && !over;
    end
    up  = !over && (normal_q.negative ? half || (last && !rest) : half && (last || rest));
    sum = {number, 1'b1} + {leading_at, up};
  end

  // Every depth has this register; its reset makes the fraction of an infinity, and what is not kept.
  always_ff @(posedge clk) begin
    if (enable) begin
      value_reg <= sum[32:1];
      if (infinite) value_reg[22:0] <= 23'd0;
      if (!normal_q.kept) value_reg <= 32'd0;
    end
  end

  assign value = value_reg;

  // Packed lanes are taken apart before they come here.
  wire unused = &{1'b0, Cuts[2], sum[0], as.pairs, as.full};

endmodule : int_lane_to_float

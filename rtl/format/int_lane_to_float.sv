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

    // fp16 and bf16 in the low half
    output logic [31:0] value
);

  if (STAGES < 1 || STAGES > MaxStages) begin : gen_bad_stages
    $fatal(1, "int_lane_to_float: STAGES must be 1..3");
  end
  localparam logic [MaxStages-1:0] Cuts = cuts(STAGES);

  // ---- magnitude and its leading one ------------------------------------------------------------------
  typedef struct packed {
    data_type_t         dtype;
    logic               sign;
    logic               zero;
    logic [31:0]        normal;    // leading one in bit 31; an INT32 lane as it is
    logic signed [10:0] exponent;  // of the leading one
  } normal_t;

  logic [31:0] magnitude;
  logic [4:0]  zeros;  // leading zeros of a magnitude that is not 0
  normal_t     normal_d;
  normal_t     normal_q;

  assign magnitude = lane[31] ? -lane : lane;

  always_comb begin
    zeros = 5'd0;
    for (int unsigned i = 0; i < 32; i++) begin
      if (magnitude[i]) zeros = 5'(31 - i);
    end
  end

  always_comb begin
    normal_d.dtype    = as.dtype;
    normal_d.sign     = lane[31];
    normal_d.zero     = magnitude == 32'd0;
    normal_d.normal   = as.dtype == DATA_TYPE_INT32 ? lane : magnitude << zeros;
    normal_d.exponent = 11'sd1 - $signed({6'b0, zeros}) + 11'(as.exponent) + $signed({8'b0, as.headroom});
  end

  pipeline_stage #(.WIDTH($bits(normal_t)), .PRESENT(Cuts[0])) after_normalize (
      .clk, .enable, .d(normal_d), .q(normal_q)
  );

  // ---- where the type's last bit lies; what falls off --------------------------------------------------
  typedef struct packed {
    data_type_t         dtype;
    logic               sign;
    logic               zero;
    logic               denormal;
    logic signed [10:0] exponent;
    logic [31:0]        kept;  // the significand in its low bits; an INT32 lane as it is
    logic               half;
    logic               sticky;
  } trimmed_t;

  logic signed [10:0] lowest;     // exponent of the smallest normal
  logic        [4:0]  precision;  // significand bits
  logic signed [10:0] below;      // exponents below the smallest normal
  logic        [5:0]  drop;       // bits of the normal form that do not fit: 8..34
  logic        [57:0] spread;
  trimmed_t           trimmed_d;
  trimmed_t           trimmed_q;

  always_comb begin
    unique case (normal_q.dtype)
      DATA_TYPE_FP16: begin
        lowest    = -11'sd14;
        precision = 5'd11;
      end
      DATA_TYPE_BF16: begin
        lowest    = -11'sd126;
        precision = 5'd8;
      end
      default: begin
        lowest    = -11'sd126;
        precision = 5'd24;
      end
    endcase
    below = lowest - normal_q.exponent;
    // Dropped by 34 nothing is left but the sticky bit.
    if (below <= 0) drop = 6'd32 - 6'(precision);
    else if (below >= 11'sd26) drop = 6'd34;
    else if (6'd32 - 6'(precision) + below[5:0] > 6'd34) drop = 6'd34;
    else drop = 6'd32 - 6'(precision) + below[5:0];
    spread = 58'({normal_q.normal, 34'b0} >> drop);

    trimmed_d.dtype    = normal_q.dtype;
    trimmed_d.sign     = normal_q.sign;
    trimmed_d.zero     = normal_q.zero;
    trimmed_d.denormal = below > 0;
    trimmed_d.exponent = normal_q.exponent;
    trimmed_d.kept     = normal_q.dtype == DATA_TYPE_INT32 ? normal_q.normal : {8'b0, spread[57:34]};
    trimmed_d.half     = spread[33];
    trimmed_d.sticky   = |spread[32:0];
  end

  pipeline_stage #(.WIDTH($bits(trimmed_t)), .PRESENT(Cuts[1])) after_trim (
      .clk, .enable, .d(trimmed_d), .q(trimmed_q)
  );

  // ---- round; a carry out of the fraction moves the exponent by itself ------------------------------------
  logic               up;
  logic signed [10:0] bias;
  logic        [10:0] field;        // the exponent field, before the carry
  logic        [33:0] number;       // exponent field ++ fraction, with room for an overflow
  logic        [31:0] infinity;
  logic        [31:0] value_d;

  assign up = trimmed_q.half && (trimmed_q.sticky || trimmed_q.kept[0]);

  always_comb begin
    bias  = trimmed_q.dtype == DATA_TYPE_FP16 ? 11'sd15 : 11'sd127;
    // A denormal has the field 0, and its significand no hidden one; a normal's hidden one is worth one exponent.
    field = trimmed_q.denormal ? 11'd0 : 11'(trimmed_q.exponent + bias - 11'sd1);
    unique case (trimmed_q.dtype)
      DATA_TYPE_FP16: begin
        number   = {13'b0, field, 10'b0} + 34'(trimmed_q.kept[23:0]) + 34'(up);
        infinity = 32'h7c00;
      end
      DATA_TYPE_BF16: begin
        number   = {16'b0, field, 7'b0} + 34'(trimmed_q.kept[23:0]) + 34'(up);
        infinity = 32'h7f80;
      end
      default: begin
        number   = {field, 23'b0} + 34'(trimmed_q.kept[23:0]) + 34'(up);
        infinity = 32'h7f80_0000;
      end
    endcase
    if (number >= {2'b0, infinity}) number = {2'b0, infinity};

    unique case (trimmed_q.dtype)
      DATA_TYPE_INT32: value_d = trimmed_q.kept;
      DATA_TYPE_FP16, DATA_TYPE_BF16: value_d = trimmed_q.zero ? 32'd0 : {16'b0, trimmed_q.sign, number[14:0]};
      default: value_d = trimmed_q.zero ? 32'd0 : {trimmed_q.sign, number[30:0]};
    endcase
  end

  pipeline_stage #(.WIDTH(32), .PRESENT(Cuts[2])) after_round (
      .clk, .enable, .d(value_d), .q(value)
  );

endmodule : int_lane_to_float

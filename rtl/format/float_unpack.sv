// Takes an fp32, fp16 or bf16 number apart into sign, significand and exponent:
// x = (-1)^sign * significand * 2^(exponent - 150).
// Combinational.
module float_unpack
  import catchment_wire_pkg::*;
(
    // fp16 and bf16 in the low half
    input  logic [31:0] value,
    input  data_type_t  dtype,

    output logic        sign,
    output logic [23:0] significand,
    // biased as fp32's; 1 for its denormals
    output logic [7:0]  exponent,
    // infinity or NaN
    output logic        nonfinite
);

  logic [7:0]  biased;
  logic [22:0] fraction;
  logic        normal;

  always_comb begin
    unique case (dtype)
      DATA_TYPE_FP16: begin
        // 127 - 15 = 112: fp16's denormals become numbers with the exponent of its smallest normal.
        sign      = value[15];
        fraction  = {value[9:0], 13'b0};
        normal    = value[14:10] != 5'd0;
        biased    = 8'd112 + {3'b0, value[14:10]};
        exponent  = normal ? biased : 8'd113;
        nonfinite = &value[14:10];
      end
      DATA_TYPE_BF16: begin
        sign      = value[15];
        fraction  = {value[6:0], 16'b0};
        normal    = value[14:7] != 8'd0;
        biased    = value[14:7];
        exponent  = normal ? biased : 8'd1;
        nonfinite = &value[14:7];
      end
      default: begin
        sign      = value[31];
        fraction  = value[22:0];
        normal    = value[30:23] != 8'd0;
        biased    = value[30:23];
        exponent  = normal ? biased : 8'd1;
        nonfinite = &value[30:23];
      end
    endcase
    significand = {normal, fraction};
  end

endmodule : float_unpack

// Combines two entries lane by lane: sums of int32 that wrap around, or of binary32, or maxima.  A maximum of binary32 has +0
// above -0, and is a NaN if either is.  In sync_pkg::alu_stages(FP32) clocks.
module lane_alu #(
    // 32-bit lanes of an entry
    parameter int unsigned LANES = 16,
    // 0: int32, 1: binary32
    parameter bit FP32 = 1'b0
) (
    input  logic                   clk,
    // the registers keep their values while this is low
    input  logic                   enable,
    // 0: sum, 1: maximum
    input  logic                   maximum,
    input  logic [LANES-1:0][31:0] a,
    input  logic [LANES-1:0][31:0] b,
    output logic [LANES-1:0][31:0] y
);

  for (genvar i = 0; i < LANES; i++) begin : gen_lane
    if (FP32) begin : gen_fp32
      localparam logic [31:0] Nan = 32'h7fc0_0000;
      // As integers, of which those below zero run the other way.
      wire [31:0] a_order = a[i] ^ {1'b0, {31{a[i][31]}}};
      wire [31:0] b_order = b[i] ^ {1'b0, {31{b[i][31]}}};
      wire        any_nan = a[i][30:0] > 31'h7f80_0000 || b[i][30:0] > 31'h7f80_0000;
      wire [31:0] larger = any_nan ? Nan : $signed(a_order) > $signed(b_order) ? a[i] : b[i];
      wire [31:0] sum;
      logic [3:0][31:0] larger_reg;
      logic [3:0]       maximum_reg;

      fp32_add adder (.clk, .enable, .a(a[i]), .b(b[i]), .y(sum));
      always_ff @(posedge clk) begin
        if (enable) begin
          larger_reg  <= {larger_reg[2:0], larger};
          maximum_reg <= {maximum_reg[2:0], maximum};
        end
      end
      assign y[i] = maximum_reg[3] ? larger_reg[3] : sum;
    end else begin : gen_int32
      wire a_larger = $signed(a[i]) > $signed(b[i]);
      always_ff @(posedge clk) if (enable) y[i] <= maximum ? (a_larger ? a[i] : b[i]) : a[i] + b[i];
    end
  end

endmodule : lane_alu

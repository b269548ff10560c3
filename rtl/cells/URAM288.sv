// The vendor's cell as far as Yosys maps memories to it: 4096 words of 72 bits, port A before port B in each clock, a
// word out a clock later, contents zero at first.  What it has no parameter or pin for, a netlist cannot ask for.
module URAM288 #(
    parameter BWE_MODE_A = "PARITY_INTERLEAVED", BWE_MODE_B = "PARITY_INTERLEAVED",
    parameter EN_AUTO_SLEEP_MODE = "FALSE", IREG_PRE_A = "FALSE", IREG_PRE_B = "FALSE", OREG_A = "FALSE", OREG_B = "FALSE",
    parameter RST_MODE_A = "SYNC", RST_MODE_B = "SYNC",
    parameter bit IS_CLK_INVERTED = 1'b0
) (
    input  logic        CLK, SLEEP,
    input  logic        EN_A, EN_B, RDB_WR_A, RDB_WR_B, RST_A, RST_B,
    input  logic        INJECT_DBITERR_A, INJECT_DBITERR_B, INJECT_SBITERR_A, INJECT_SBITERR_B,
    input  logic [22:0] ADDR_A, ADDR_B,
    input  logic [8:0]  BWE_A, BWE_B,
    input  logic [71:0] DIN_A, DIN_B,
    output logic [71:0] DOUT_A, DOUT_B
);

  if (EN_AUTO_SLEEP_MODE != "FALSE" || IREG_PRE_A != "FALSE" || IREG_PRE_B != "FALSE" || OREG_A != "FALSE" ||
      OREG_B != "FALSE" || IS_CLK_INVERTED) begin : gen_modes
    $fatal(1, "URAM288: registers, sleep and the other edge are not modelled");
  end

  // The bits that byte enables name: parity has an enable of its own, or those of the bytes that it belongs to.
  function automatic logic [71:0] bits_of(logic [8:0] enables, bit interleaved);
    logic [71:0] bits;
    for (int i = 0; i < 9; i++) bits[8*i+:8] = {8{enables[i]}};
    return interleaved ? {enables[7:0], bits[63:0]} : bits;
  endfunction

  logic [71:0] words[4096];
  logic [71:0] bits;
  initial foreach (words[i]) words[i] = '0;
  initial {DOUT_A, DOUT_B} = '0;

  always @(posedge CLK) begin
    if (SLEEP || INJECT_DBITERR_A || INJECT_DBITERR_B || INJECT_SBITERR_A || INJECT_SBITERR_B ||
        (EN_A && ADDR_A[22:12] != '0) || (EN_B && ADDR_B[22:12] != '0)) begin
      $fatal(1, "URAM288: sleep, errors and cascades are not modelled");
    end
    if ((RST_A && RST_MODE_A != "SYNC") || (RST_B && RST_MODE_B != "SYNC")) begin
      $fatal(1, "URAM288: asynchronous resets are not modelled");
    end
    if (EN_A && RDB_WR_A) begin
      bits = bits_of(BWE_A, BWE_MODE_A == "PARITY_INTERLEAVED");
      words[ADDR_A[11:0]] = (words[ADDR_A[11:0]] & ~bits) | (DIN_A & bits);
    end
    if (RST_A) DOUT_A <= '0;
    else if (EN_A && !RDB_WR_A) DOUT_A <= words[ADDR_A[11:0]];
    if (EN_B && RDB_WR_B) begin
      bits = bits_of(BWE_B, BWE_MODE_B == "PARITY_INTERLEAVED");
      words[ADDR_B[11:0]] = (words[ADDR_B[11:0]] & ~bits) | (DIN_B & bits);
    end
    if (RST_B) DOUT_B <= '0;
    else if (EN_B && !RDB_WR_B) DOUT_B <= words[ADDR_B[11:0]];
  end

endmodule : URAM288

// The vendor's cell as far as Yosys maps memories to it: no output registers, no cascade, no ECC, contents unknown at
// first, one clock.  What it has no parameter or pin for, a netlist cannot ask for.
module RAMB36E2 #(
    parameter int DOA_REG = 1, DOB_REG = 1,
    parameter int READ_WIDTH_A = 0, READ_WIDTH_B = 0, WRITE_WIDTH_A = 0, WRITE_WIDTH_B = 0,
    parameter WRITE_MODE_A = "NO_CHANGE", WRITE_MODE_B = "NO_CHANGE",
    parameter logic [35:0] INIT_A = '0, INIT_B = '0, SRVAL_A = '0, SRVAL_B = '0
) (
    input  logic        CLKARDCLK, CLKBWRCLK,
    input  logic        ENARDEN, ENBWREN, ADDRENA, ADDRENB, SLEEP,
    input  logic        RSTRAMARSTRAM, RSTRAMB, RSTREGARSTREG, RSTREGB, REGCEAREGCE, REGCEB,
    input  logic [14:0] ADDRARDADDR, ADDRBWRADDR,
    input  logic [3:0]  WEA,
    input  logic [7:0]  WEBWE,
    input  logic [31:0] DINADIN, DINBDIN,
    input  logic [3:0]  DINPADINP, DINPBDINP,
    output logic [31:0] DOUTADOUT, DOUTBDOUT,
    output logic [3:0]  DOUTPADOUTP, DOUTPBDOUTP
);

  localparam bit UsesA = READ_WIDTH_A != 0 || WRITE_WIDTH_A != 0, UsesB = READ_WIDTH_B != 0 || WRITE_WIDTH_B != 0;
  localparam bit WideRead = READ_WIDTH_A > 36, WideWrite = WRITE_WIDTH_B > 36;
  if (DOA_REG != 0 || DOB_REG != 0) begin : gen_registers
    $fatal(1, "RAMB36E2: output registers are not modelled");
  end

  logic [63:0] wide_a, wide_b;
  logic [7:0]  widep_a, widep_b;
  wire clk = UsesA ? CLKARDCLK : CLKBWRCLK;

  block_ram #(
      .HALF(32), .READ_A(READ_WIDTH_A), .READ_B(READ_WIDTH_B), .WRITE_A(WRITE_WIDTH_A), .WRITE_B(WRITE_WIDTH_B),
      .MODE_A(WRITE_MODE_A), .MODE_B(WRITE_MODE_B),
      .INIT_A, .INIT_B, .SRVAL_A, .SRVAL_B
  ) memory (
      .clk, .en_a(ENARDEN), .en_b(ENBWREN), .rst_a(RSTRAMARSTRAM), .rst_b(RSTRAMB),
      .we_a(8'(WEA)), .we_b(WideWrite ? WEBWE : 8'(WEBWE[3:0])), .addr_a(ADDRARDADDR), .addr_b(ADDRBWRADDR),
      .din_a(64'(DINADIN)), .din_b(WideWrite ? {DINBDIN, DINADIN} : 64'(DINBDIN)),
      .dinp_a(8'(DINPADINP)), .dinp_b(WideWrite ? {DINPBDINP, DINPADINP} : 8'(DINPBDINP)),
      .dout_a(wide_a), .dout_b(wide_b), .doutp_a(widep_a), .doutp_b(widep_b)
  );

  assign {DOUTPADOUTP, DOUTADOUT} = {widep_a[3:0], wide_a[31:0]};
  assign {DOUTPBDOUTP, DOUTBDOUT} =
      WideRead ? {widep_a[7:4], wide_a[63:32]} : {widep_b[3:0], wide_b[31:0]};

  always @(posedge clk) begin
    if (UsesA && UsesB && CLKARDCLK != CLKBWRCLK) $fatal(1, "RAMB36E2: two clocks are not modelled");
    if (SLEEP) $fatal(1, "RAMB36E2: sleep is not modelled");
  end

endmodule : RAMB36E2

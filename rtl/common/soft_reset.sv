// A soft reset that memory does not notice: no new burst begins, the bursts under way end, then everything behind the
// registers is reset.  A reset that memory never lets finish stays visible in `busy`.
module soft_reset #(
    // the reset lasts so many clocks
    parameter int unsigned CLOCKS = 8
) (
    input  logic clk,
    input  logic rst,

    // high for one clock: the reset begins; another request meanwhile changes nothing
    input  logic request,
    // high from the request to the end of its reset
    output logic busy,

    // `hold` tells the modules that read and write memory to begin no burst; `idle` is their answer: none is under way
    output logic hold,
    input  logic idle,
    // the reset of everything behind the registers: a register's output, also high during rst
    output logic core_rst
);

  localparam int unsigned CountBits = $clog2(CLOCKS) + 1;

  logic                 hold_reg;
  logic [CountBits-1:0] left_reg;

  assign hold = hold_reg;
  assign busy = hold_reg || left_reg != '0;

  always_ff @(posedge clk) begin
    if (rst) begin
      hold_reg <= 1'b0;
      left_reg <= CountBits'(CLOCKS);
      core_rst <= 1'b1;
    end else begin
      core_rst <= left_reg != '0;
      if (left_reg != '0) left_reg <= left_reg - 1'b1;
      // The engine's reset ends its hold: the counter starts only when nothing is under way.
      if (hold_reg && idle) begin
        hold_reg <= 1'b0;
        left_reg <= CountBits'(CLOCKS);
        core_rst <= 1'b1;
      end else if (request && !busy) begin
        hold_reg <= 1'b1;
      end
    end
  end

endmodule : soft_reset

// A soft reset that memory does not notice: no new burst begins, those under way end, then everything behind the registers
// is reset.  A reset that memory never lets finish stays visible in `busy`.
module soft_reset #(
    // clocks that the reset lasts
    parameter int unsigned CLOCKS = 8
) (
    input  logic clk,
    input  logic rst,

    // for a clock: begin; another one meanwhile changes nothing
    input  logic request,
    // from the request to its end
    output logic busy,

    // to what reads and writes memory: no new burst; from it: none is under way
    output logic hold,
    input  logic idle,
    // registered, also high during rst
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

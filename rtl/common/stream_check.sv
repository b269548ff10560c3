// The handshake law of a stream: once valid, a beat stays as it is until it is taken; only a reset takes it back.
// An assertion in simulation and in proofs, nothing in synthesis.
module stream_check #(
    // bits of a beat
    parameter int unsigned WIDTH = 512
) (
    input logic             clk,
    input logic             rst,
    input logic [WIDTH-1:0] data,
    input logic             valid,
    input logic             ready
);

`ifdef VERILATOR
  stays_until_taken :
  assert property (@(posedge clk) disable iff (rst) valid && !ready |=> valid && $stable(data))
  else $error("%m: a beat changed or vanished before it was taken");
`elsif FORMAL
  logic past_valid_reg = 1'b0;
  always_ff @(posedge clk) begin
    past_valid_reg <= 1'b1;
    if (past_valid_reg && !rst && !$past(rst) && $past(valid) && !$past(ready)) begin
      stays_until_taken : assert (valid && $stable(data));
    end
  end
`else
  wire unused = &{1'b0, clk, rst, data, valid, ready};
`endif

endmodule : stream_check

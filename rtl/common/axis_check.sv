// The laws of an AXI-Stream port with packets: the handshake law of stream_check, and kept bytes come first in a beat
// without a hole, all of them except in a packet's last beat, which keeps at least one.
// Assertions in simulation and in proofs, nothing in synthesis.
module axis_check #(
    // bits of a beat
    parameter int unsigned WIDTH = 512,
    parameter int unsigned USER_WIDTH = 1
) (
    input logic                  clk,
    input logic                  rst,
    input logic [WIDTH-1:0]      tdata,
    input logic [WIDTH/8-1:0]    tkeep,
    input logic                  tlast,
    input logic [USER_WIDTH-1:0] tuser,
    input logic                  tvalid,
    input logic                  tready
);

  stream_check #(.WIDTH(WIDTH + WIDTH / 8 + 1 + USER_WIDTH)) handshake (
      .clk, .rst, .data({tdata, tkeep, tlast, tuser}), .valid(tvalid), .ready(tready)
  );

`ifdef VERILATOR
  kept_bytes_come_first :
  assert property (@(posedge clk) disable iff (rst) tvalid |-> tkeep[0] && (tkeep & (tkeep + 1'b1)) == '0)
  else $error("%m: tkeep %h has a hole or keeps nothing", tkeep);

  whole_until_last :
  assert property (@(posedge clk) disable iff (rst) tvalid && !tlast |-> &tkeep)
  else $error("%m: a beat that is not a packet's last keeps only %h", tkeep);
`elsif FORMAL
  always_ff @(posedge clk) begin
    if (!rst && tvalid) begin
      kept_bytes_come_first : assert (tkeep[0] && (tkeep & (tkeep + 1'b1)) == '0);
      whole_until_last : assert (tlast || &tkeep);
    end
  end
`endif

endmodule : axis_check

// Grants one of several requesters at a time: the lowest number that asks.  The grant stays until that requester is
// done, also when a lower number asks meanwhile.
module arbiter_priority #(
    // number of requesters, at least 1
    parameter int unsigned COUNT = 2,
    // derived from COUNT: bits of a requester's number
    parameter int unsigned INDEX_BITS = COUNT > 1 ? $clog2(COUNT) : 1
) (
    input  logic                  clk,
    input  logic                  rst,

    // bit i: requester i asks; it keeps asking until it was granted and is done
    input  logic [COUNT-1:0]      request,
    // the requester that holds the grant is done in this clock (a packet's last beat moves)
    input  logic                  done,

    // the bit of the requester that is granted; no bit when none asks
    output logic [COUNT-1:0]      grant,
    // the number of that requester
    output logic [INDEX_BITS-1:0] index,
    output logic                  granted
);

  if (COUNT < 1) begin : gen_bad_count
    $fatal(1, "arbiter_priority: COUNT must be at least 1");
  end

  logic [COUNT-1:0] held_reg;  // the grant of a requester that is not done yet, or none

  always_comb begin
    grant = |held_reg ? held_reg : request & -request;
    index = '0;
    for (int unsigned i = 0; i < COUNT; i++) begin
      if (grant[i]) index = index | INDEX_BITS'(i);
    end
  end

  assign granted = |grant;

  always_ff @(posedge clk) begin
    if (rst) held_reg <= '0;
    else held_reg <= done ? '0 : grant;
  end

endmodule : arbiter_priority

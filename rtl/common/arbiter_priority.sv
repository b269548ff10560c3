// Who may go: the lowest number first.  A grant stays until what was granted is done, also when a lower number asks
// meanwhile.
module arbiter_priority #(
    // who may ask, at least 1
    parameter int unsigned COUNT = 2,
    // derived
    parameter int unsigned INDEX_BITS = COUNT > 1 ? $clog2(COUNT) : 1
) (
    input  logic                  clk,
    input  logic                  rst,

    // stays until granted and done
    input  logic [COUNT-1:0]      request,
    // what was granted is done in this clock (a packet's last beat moves)
    input  logic                  done,

    // one bit, or none when nobody asks
    output logic [COUNT-1:0]      grant,
    // the position of that bit
    output logic [INDEX_BITS-1:0] index,
    output logic                  granted
);

  if (COUNT < 1) begin : gen_bad_count
    $fatal(1, "arbiter_priority: COUNT must be at least 1");
  end

  logic [COUNT-1:0] held_reg;  // a grant that is not done yet, or none

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

// Grants one of several requesters at a time, round robin.  The grant stays until that requester is done, also when
// others ask meanwhile; then the next one has its turn.  When all COUNT ask all the time, COUNT grants serve each once.
module arbiter_rr #(
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
    $fatal(1, "arbiter_rr: COUNT must be at least 1");
  end

  logic [COUNT-1:0] held_reg;   // the grant of a requester that is not done yet, or none
  logic [COUNT-1:0] after_reg;  // the requesters after the one served last: they go first
  logic [COUNT-1:0] preferred;
  logic [COUNT-1:0] pick;

  always_comb begin
    preferred = request & after_reg;
    // The lowest bit of x is x & -x.
    pick      = |preferred ? preferred & -preferred : request & -request;
    grant     = |held_reg ? held_reg : pick;
    index     = '0;
    for (int unsigned i = 0; i < COUNT; i++) begin
      if (grant[i]) index = index | INDEX_BITS'(i);
    end
  end

  assign granted = |grant;

  always_ff @(posedge clk) begin
    if (rst) begin
      held_reg  <= '0;
      after_reg <= '0;
    end else begin
      held_reg <= done ? '0 : grant;
      if (done && granted) after_reg <= ~(grant | (grant - 1'b1));
    end
  end

endmodule : arbiter_rr

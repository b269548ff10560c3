// This harness shows of arbiter_rr that at most one requester is granted, only one that asks, and one whenever any asks, that the
// grant stays until the requester is done, and that a requester waits for at most COUNT - 1 others.
module arbiter_fv #(
    parameter int unsigned COUNT = 4
) (
    input logic             clk,
    input logic             rst,
    input logic [COUNT-1:0] request,
    input logic             done
);

  localparam int unsigned IndexBits = $clog2(COUNT);

  logic [COUNT-1:0]     grant;
  logic [IndexBits-1:0] index;
  logic                 granted;

  logic started_reg = 1'b0;
  logic under_way_reg;  // a grant of the last clock is not done

  always_ff @(posedge clk) begin
    started_reg <= 1'b1;
    if (!started_reg) assume (rst);
    // a request stays until it was granted and done
    else if (!$past(rst)) assume (rst || ($past(request) & ~($past(done) ? $past(grant) : '0) & ~request) == '0);
    under_way_reg <= !rst && granted && !done;

    if (started_reg && !rst) begin
      at_most_one : assert ((grant & (grant - 1'b1)) == '0);
      only_who_asks : assert ((grant & ~request) == '0);
      somebody : assert (granted == |request && granted == |grant);
      index_of : assert (!granted || grant == COUNT'(1) << index);
      if (under_way_reg && !$past(rst)) begin
        stays : assert (grant == $past(grant));
      end
      all_ask : cover (&request && done && index == IndexBits'(COUNT - 1));
      late_lower : cover (under_way_reg && index == IndexBits'(COUNT - 1) && request[0]);
    end
  end

  arbiter_rr #(.COUNT(COUNT)) dut (.*);

  // the requester that is watched: any one, always the same
  logic [IndexBits-1:0] who_reg;
  logic [IndexBits:0]   waited_reg;  // grants done to others while it asks

  // how many come before i in this round
  function automatic logic [IndexBits:0] distance(logic [COUNT-1:0] after, logic [IndexBits-1:0] i);
    logic [IndexBits:0] start;
    start = '0;
    for (int unsigned k = 0; k < COUNT; k++) start = start + (IndexBits + 1)'(!after[k]);
    return {1'b0, i} >= start ? {1'b0, i} - start : {1'b0, i} + (IndexBits + 1)'(COUNT) - start;
  endfunction

  always_ff @(posedge clk) begin
    who_reg <= who_reg;
    if (rst || !request[who_reg] || (done && grant[who_reg])) waited_reg <= '0;
    else if (done) waited_reg <= waited_reg + 1'b1;

    if (started_reg && !rst) begin
      fair : assert (waited_reg < (IndexBits + 1)'(COUNT));
      // what makes it inductive
      round : assert (((dut.after_reg | (dut.after_reg - 1'b1)) == '1) || dut.after_reg == '0);
      held_asks : assert ((dut.held_reg & (dut.held_reg - 1'b1)) == '0 && (dut.held_reg & ~request) == '0);
      turns : assert (waited_reg == '0 || waited_reg + distance(dut.after_reg, who_reg) < (IndexBits + 1)'(COUNT));
      if (waited_reg != '0 && dut.held_reg != '0 && !dut.held_reg[who_reg]) begin
        no_overtaking : assert (distance(dut.after_reg, index) < distance(dut.after_reg, who_reg));
      end
      waits_longest : cover (waited_reg == (IndexBits + 1)'(COUNT - 1) && grant[who_reg] && done);
    end
  end

endmodule : arbiter_fv

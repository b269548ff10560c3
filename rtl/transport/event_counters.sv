// Many wide counters in little room: each event has a few bits of its own, which a sweep adds to a word of a memory in turn.
module event_counters #(
    // a power of two
    parameter int unsigned EVENTS = 32,
    // bits of a counter
    parameter int unsigned WIDTH = 48
) (
    input  logic                      clk,
    // zeroes the counters, in EVENTS clocks after it; what happens meanwhile is counted
    input  logic                      rst,

    input  logic [EVENTS-1:0]         events,

    input  logic [$clog2(EVENTS)-1:0] index,
    // up to 2 EVENTS + 1 clocks late
    output logic [WIDTH-1:0]          value
);

  localparam int unsigned IndexBits = $clog2(EVENTS);
  // an event each clock of a sweep, and of the one that clears
  localparam int unsigned RecentBits = IndexBits + 2;

  (* ram_style = "distributed" *) logic [WIDTH-1:0] total_mem[EVENTS];

  // a clock late: what says that something happened is at the end of long paths
  logic [EVENTS-1:0]                 event_reg;
  logic [EVENTS-1:0][RecentBits-1:0] recent_reg;
  logic [IndexBits-1:0]              sweep_reg;
  logic                              clear_reg;

  assign value = clear_reg ? '0 : total_mem[index];

  wire [WIDTH-1:0] total = total_mem[sweep_reg] + WIDTH'(recent_reg[sweep_reg]);

  always_ff @(posedge clk) begin
    total_mem[sweep_reg] <= clear_reg ? '0 : total;
    event_reg            <= rst ? '0 : events;
    if (rst) begin
      recent_reg <= '0;
      sweep_reg  <= '0;
      clear_reg  <= 1'b1;
    end else begin
      sweep_reg <= sweep_reg + 1'b1;
      if (&sweep_reg) clear_reg <= 1'b0;
      for (int unsigned i = 0; i < EVENTS; i++) begin
        if (sweep_reg == IndexBits'(i) && !clear_reg) recent_reg[i] <= RecentBits'(event_reg[i]);
        else recent_reg[i] <= recent_reg[i] + RecentBits'(event_reg[i]);
      end
    end
  end

endmodule : event_counters

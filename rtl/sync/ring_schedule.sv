// Walks the segments of a chunk in the order in which a device of a ring handles them: its own, then the one before, and so on
// around.  Segment s of a chunk has the entries from s * segment on, `segment` of them or what is left of the chunk.
//
// The segment that follows is worked out in the first two clocks of the present one, so one of three entries or more is followed
// at once.
module ring_schedule #(
    // of a number of entries
    parameter int unsigned ENTRY_BITS = 16
) (
    input  logic                  clk,

    // begin with segment `position`
    input  logic                  load,
    input  logic [3:0]            position,
    // its first entry, and its count if that is known; else it is worked out in a clock
    input  logic [ENTRY_BITS+3:0] begin_first,
    input  logic [ENTRY_BITS-1:0] begin_count,
    input  logic                  begin_known,

    // go to the segment before; only while `known`
    input  logic                  advance,
    // number of devices, less one
    input  logic [3:0]            last,
    // from the clock after `load` on these two stay as they are while a chunk is walked
    input  logic [ENTRY_BITS-1:0] segment,
    input  logic [ENTRY_BITS-1:0] entries,

    // the next two are those of the present segment
    output logic                  known,
    // the first entry, which counts only if there is one
    output logic [ENTRY_BITS+3:0] first,
    output logic [ENTRY_BITS-1:0] count
);

  typedef logic [ENTRY_BITS+3:0] place_t;
  typedef logic [ENTRY_BITS-1:0] count_t;

  function automatic count_t count_from(input place_t place);
    count_t left;
    left = entries - place[ENTRY_BITS-1:0];
    return place >= place_t'(entries) ? '0 : left < segment ? left : segment;
  endfunction

  logic [3:0] index_reg;
  place_t     first_reg;
  count_t     count_reg;
  logic       known_reg;
  // of the segment that follows, after a clock of the present one and after two
  place_t     next_first_reg;
  count_t     next_count_reg;
  logic [1:0] clock_reg;  // of the present segment, 2 at most
  logic       turn_reg;   // the present one was done before clock 2

  wire at_zero = index_reg == '0;
  wire moves = (advance || turn_reg) && clock_reg == 2'd2;

  assign known = known_reg;
  assign first = first_reg;
  assign count = count_reg;

  always_ff @(posedge clk) begin
    next_first_reg <= at_zero ? place_t'(sync_pkg::times(last, 32'(segment))) : first_reg - place_t'(segment);
    next_count_reg <= count_from(next_first_reg);
    if (load) begin
      index_reg <= position;
      first_reg <= begin_first;
      count_reg <= begin_count;
      known_reg <= begin_known;
      turn_reg  <= 1'b0;
      clock_reg <= 2'd0;
    end else if (moves) begin
      index_reg <= at_zero ? last : index_reg - 1'b1;
      first_reg <= next_first_reg;
      count_reg <= next_count_reg;
      known_reg <= 1'b1;
      turn_reg  <= 1'b0;
      clock_reg <= 2'd0;
    end else begin
      if (clock_reg == 2'd0) count_reg <= count_from(first_reg);
      if (clock_reg != 2'd2) clock_reg <= clock_reg + 2'd1;
      if (advance) turn_reg <= 1'b1;
      known_reg <= !advance && !turn_reg;
    end
  end

endmodule : ring_schedule

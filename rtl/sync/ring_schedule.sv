// Walks the segments of a chunk in the order in which a device of a ring handles them: its own, then the one before, and so on
// around.  Segment s of a chunk has the entries from s * segment on, `segment` of them or what is left of the chunk.
module ring_schedule #(
    // of a number of entries
    parameter int unsigned ENTRY_BITS = 16
) (
    input  logic                  clk,

    // begin with segment `position`; `advance` goes to the one before
    input  logic                  load,
    input  logic                  advance,
    input  logic [3:0]            position,
    // number of devices, less one
    input  logic [3:0]            last,
    // these two stay as they are while a chunk is walked
    input  logic [ENTRY_BITS-1:0] segment,
    input  logic [ENTRY_BITS-1:0] entries,

    // the first entry of the present segment, which counts only if there is one
    output logic [ENTRY_BITS-1:0] first,
    output logic [ENTRY_BITS-1:0] count
);

  typedef logic [ENTRY_BITS+3:0] place_t;

  // A product of LUTs: four rows.
  function automatic place_t times(input logic [3:0] factor, input logic [ENTRY_BITS-1:0] value);
    place_t sum = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      if (factor[i]) sum += place_t'(value) << i;
    end
    return sum;
  endfunction

  logic [3:0] index_reg;
  place_t     first_reg;

  wire        at_zero = index_reg == '0;
  wire [3:0]  target = load ? position : last;
  wire place_t product = times(target, segment);
  wire        reached = first_reg < place_t'(entries);
  wire [ENTRY_BITS-1:0] left = entries - first_reg[ENTRY_BITS-1:0];

  assign first = first_reg[ENTRY_BITS-1:0];
  assign count = !reached ? '0 : left < segment ? left : segment;

  always_ff @(posedge clk) begin
    if (load || (advance && at_zero)) begin
      index_reg <= target;
      first_reg <= product;
    end else if (advance) begin
      index_reg <= index_reg - 1'b1;
      first_reg <= first_reg - place_t'(segment);
    end
  end

endmodule : ring_schedule

// The dot products of one bank: 64 bit-serial multipliers, adder tree, accumulators (P4SGD, IV-A3).
// A step chooses 0, a weight, its neighbour or the sum of both by two bits of the plane, and takes it from what came down
// its chain: one LUT a bit for two products and their addition, which mappers find for a difference only, so chains count
// down.  Each begins at -1 less its first choice, for a complement is free; the eight ones come back as the carries of
// the additions behind, a - ~b.  Four steps make a chain, a clock apart as rows arrive; eight chains meet in a tree.
//
//   clock 0..3  step t: bits and pairs of row t      clock 7   2 * sum + plane
//   clock 4..6  tree of eight chains                 clock 8   total - chunk;  at clock 9 `total` is there
module bit_serial_bank
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input  logic                             clk,

    // at clock t of a plane, row t of it; pairs stay while their chunk's planes pass
    input  logic  [Rows-1:0][RowLanes-1:0]   bits,
    input  pair_t [Rows-1:0][RowLanes/2-1:0] pairs,

    // at clock 7: a plane is here, a chunk's first one
    input  logic                             plane,
    input  logic                             plane_first,
    // at clock 8: a chunk is here
    input  logic                             chunk,
    // at clock 9: its micro-batch's last, so `total` is complete and begins anew, with the chunk that is here
    input  logic                             clear,

    output accumulator_t                     total
);

  // verilator no_inline_module

  localparam int unsigned Chains = RowLanes / 2;
  localparam int unsigned StepBits = WeightBits + 3;

  function automatic logic signed [WeightBits:0] chosen(pair_t pair, logic [1:0] which);
    case (which)
      2'b00: return '0;
      2'b01: return (WeightBits + 1)'(pair.even);
      2'b10: return (WeightBits + 1)'(pair.odd);
      default: return pair.sum;
    endcase
  endfunction

  logic signed [StepBits-1:0] chain_reg[Chains][Rows];

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < Chains; i++) begin
      chain_reg[i][0] <= ~StepBits'(chosen(pairs[0][i], bits[0][2*i+:2]));
      for (int unsigned t = 1; t < Rows; t++) begin
        chain_reg[i][t] <= chain_reg[i][t-1] - StepBits'(chosen(pairs[t][i], bits[t][2*i+:2]));
      end
    end
  end

  logic signed [StepBits:0]   fours_reg[4];
  logic signed [StepBits+1:0] twos_reg[2];
  logic signed [StepBits+2:0] plane_reg;

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < 4; i++) begin
      fours_reg[i] <= (StepBits + 1)'(chain_reg[2*i][Rows-1]) - ~(StepBits + 1)'(chain_reg[2*i+1][Rows-1]);
    end
    for (int unsigned i = 0; i < 2; i++) begin
      twos_reg[i] <= (StepBits + 2)'(fours_reg[2*i]) - ~(StepBits + 2)'(fours_reg[2*i+1]);
    end
    plane_reg <= (StepBits + 3)'(twos_reg[0]) - ~(StepBits + 3)'(twos_reg[1]);
  end

  logic signed [ChunkSumBits-1:0] chunk_reg;
  accumulator_t                   total_reg;

  assign total = total_reg;

  always_ff @(posedge clk) begin
    if (plane) chunk_reg <= ChunkSumBits'(plane_reg) - ~(plane_first ? '0 : chunk_reg <<< 1);
    if (clear || chunk) total_reg <= (clear ? '0 : total_reg) - (chunk ? AccumulatorBits'(chunk_reg) : '0);
  end

endmodule : bit_serial_bank

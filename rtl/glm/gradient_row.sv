// Gradient accumulation and model update of an engine, a row of 16 lanes a clock (P4SGD, IV-A2).
// The first micro-batch of a mini-batch begins the sums anew; the last one takes them from the weights:
// x - rhe(g >> shift), cut to the ends (Algorithm 1, line 35).
//
//   clock 0   position        clock 10  the sums so far           clock 11  sums: into their memory
//   clock 12..14  shifted     clock 15  taken from the weights    clock 16  cut: written
module gradient_row
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    parameter int unsigned MODEL_ROWS = 16384,
    localparam int unsigned IndexBits = $clog2(MODEL_ROWS)
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [5:0]               shift,

    input  logic                     row_valid,
    input  logic [IndexBits-1:0]     row_index,
    input  logic                     row_first,
    input  logic                     row_last,
    // the sums of the mini-batch so far, ten clocks behind the position; a clock later those with the row's products
    output gradient_t [RowLanes-1:0] so_far,
    output logic                     so_far_valid,
    input  gradient_t [RowLanes-1:0] sums,

    // the weights of row `weight_row` arrive two clocks later
    output logic [IndexBits-1:0]     weight_row,
    input  logic [RowBits-1:0]       weights,

    output logic                     write,
    output logic [IndexBits-1:0]     write_row,
    output logic [RowBits-1:0]       write_weights,
    // weights that were cut
    output logic [4:0]               saturated,
    // rows are on their way
    output logic                     busy
);

  localparam int unsigned AtRead   = 8;   // the memory of sums is read
  localparam int unsigned AtSum    = 10;
  localparam int unsigned AtWrite  = 11;
  localparam int unsigned AtWeight = 12;  // the weights are asked for
  localparam int unsigned AtEnd    = 16;

  typedef struct packed {
    logic                 valid;
    logic                 first;
    logic                 last;
    logic [IndexBits-1:0] index;
  } place_t;

  place_t [AtEnd:1] place_reg;

  always_ff @(posedge clk) begin
    place_reg[1] <= '{valid: row_valid, first: row_first, last: row_last, index: row_index};
    for (int unsigned i = 2; i <= AtEnd; i++) place_reg[i] <= place_reg[i-1];
    if (rst) for (int unsigned i = 1; i <= AtEnd; i++) place_reg[i].valid <= 1'b0;
  end

  logic [AtEnd:1] valids;
  for (genvar i = 1; i <= AtEnd; i++) begin : gen_valid
    assign valids[i] = place_reg[i].valid;
  end
  assign busy = row_valid || |valids;

  // ---- the sums of the mini-batch so far ---------------------------------------------------------------------------
  row_ram #(.WIDTH(RowLanes * GradientBits), .DEPTH(MODEL_ROWS)) totals (
      .clk,
      .write(place_reg[AtWrite].valid && !place_reg[AtWrite].last),
      .write_row(place_reg[AtWrite].index),
      .write_data(sums),
      .read_row(place_reg[AtRead].index),
      .read_data(so_far)
  );

  assign so_far_valid = !place_reg[AtSum].first;

  // ---- the update -------------------------------------------------------------------------------------------------
  logic [RowLanes-1:0] cut;

  for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
    gradient_t                      loss;
    logic                           up;
    logic signed [GradientBits:0]   less_reg;
    weight_t                        weight_reg;
    logic                           cut_reg;

    rounding_shift #(.WIDTH(GradientBits), .SHIFT_BITS(6)) shifter (
        .clk, .shift, .d(sums[i]), .q(loss), .up
    );

    wire signed [WeightBits-1:0] old = weights[WeightBits*i+:WeightBits];
    // x - (loss + up)
    wire signed [GradientBits:0] less = (GradientBits + 1)'(old) + ~(GradientBits + 1)'(loss) + (GradientBits + 1)'(!up);
    wire high = !less_reg[GradientBits] && |less_reg[GradientBits-1:WeightBits-1];
    wire low  = less_reg[GradientBits] && (!(&less_reg[GradientBits-1:WeightBits-1]) || less_reg[WeightBits-2:0] == '0);

    always_ff @(posedge clk) begin
      less_reg   <= less;
      weight_reg <= high ? WeightLimit : low ? -WeightLimit : less_reg[WeightBits-1:0];
      cut_reg    <= high || low;
    end

    assign write_weights[WeightBits*i+:WeightBits] = weight_reg;
    assign cut[i] = cut_reg;
  end

  assign weight_row = place_reg[AtWeight].index;
  assign write      = place_reg[AtEnd].valid && place_reg[AtEnd].last;
  assign write_row  = place_reg[AtEnd].index;

  always_comb begin
    saturated = 5'd0;
    for (int unsigned i = 0; i < RowLanes; i++) saturated += 5'(cut[i] && write);
  end

endmodule : gradient_row

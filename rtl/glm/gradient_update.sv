// Gradient accumulation and model update of an engine (P4SGD, IV-A2): a chunk's four rows of 16 lanes, a clock apart.
// The first micro-batch of a mini-batch begins the sums anew; the last one takes them from the weights, a row a clock:
// x - rhe(g >> shift), cut to the ends (Algorithm 1, line 35).  Of row t, t clocks later:
//
//   clock 0   position        clock 10  the sums so far            clock 11  sums: into their memory, or
//   clock 12  chosen          clock 13..15  shifted                clock 16  taken from the weights
//   clock 17  cut: written
module gradient_update
  import glm_numbers_pkg::*;
  import glm_pkg::*;
#(
    parameter int unsigned MODEL_ROWS = 16384,
    localparam int unsigned ChunkBits = $clog2(MODEL_ROWS / Rows)
) (
    input  logic                     clk,
    input  logic                     rst,
    input  logic [5:0]               shift,

    // a chunk; one of a mini-batch's last micro-batch is alone for four clocks
    input  logic                     chunk_valid,
    input  logic [ChunkBits-1:0]     chunk_index,
    input  logic                     chunk_first,
    input  logic                     chunk_last,
    // the sums of the mini-batch so far, 10 + t clocks behind the position; a clock later those with the row's products
    output gradient_t [Rows-1:0][RowLanes-1:0] so_far,
    output logic      [Rows-1:0]               so_far_valid,
    input  gradient_t [Rows-1:0][RowLanes-1:0] sums,

    // row t of the weights of `weight_chunk[t]` arrives two clocks after it is read, and zeros while none was
    output logic [Rows-1:0]                read,
    output logic [Rows-1:0][ChunkBits-1:0] read_chunk,
    input  logic [Rows-1:0][RowBits-1:0]   weights,

    // of at most one row
    output logic [Rows-1:0]                write,
    output logic [Rows-1:0][ChunkBits-1:0] write_chunk,
    // three clocks after weights arrived: these, less what is taken from them
    output logic [RowBits-1:0]             write_weights,

    // while nothing is updated: a row from outside, written in the next clock
    input  logic                           load,
    input  logic [ChunkBits+1:0]           load_row,
    input  logic [RowBits-1:0]             load_weights,

    // a chunk's row 0 is updated, the others follow, one a clock
    output logic                     credit,
    // weights that were cut
    output logic [4:0]               saturated,
    // rows are on their way
    output logic                     busy
);

  // clocks of row 0
  localparam int unsigned AtRead   = 8;   // the memory of sums is read
  localparam int unsigned AtSum    = 10;
  localparam int unsigned AtWrite  = 11;
  localparam int unsigned AtWeight = 13;  // the weights are asked for
  localparam int unsigned AtEnd    = 17;
  localparam int unsigned Last     = AtEnd + Rows - 1;

  typedef struct packed {
    logic                 valid;
    logic                 first;
    logic                 last;
    logic [ChunkBits-1:0] index;
  } place_t;

  place_t [Last:1] place_reg;

  always_ff @(posedge clk) begin
    place_reg[1] <= '{valid: chunk_valid, first: chunk_first, last: chunk_last, index: chunk_index};
    for (int unsigned i = 2; i <= Last; i++) place_reg[i] <= place_reg[i-1];
    if (rst) for (int unsigned i = 1; i <= Last; i++) place_reg[i].valid <= 1'b0;
  end

  logic [Last:1] valids;
  for (genvar i = 1; i <= Last; i++) begin : gen_valid
    assign valids[i] = place_reg[i].valid;
  end
  assign busy = chunk_valid || |valids;

  // ---- the sums of the mini-batch so far ---------------------------------------------------------------------------
  for (genvar t = 0; t < Rows; t++) begin : gen_total
    row_ram #(.WIDTH(RowLanes * GradientBits), .DEPTH(MODEL_ROWS / Rows)) totals (
        .clk,
        .write(place_reg[AtWrite+t].valid && !place_reg[AtWrite+t].last),
        .write_row(place_reg[AtWrite+t].index),
        .write_data(sums[t]),
        .read(1'b1),
        .read_row(place_reg[AtRead+t].index),
        .read_data(so_far[t])
    );

    assign so_far_valid[t] = !place_reg[AtSum+t].first;
  end

  // ---- the row that is updated; without one it is zeros, so that weights pass unchanged ------------------------------
  logic [Rows-1:0]          next_ends;  // row t's sums are complete in the next clock
  logic [1:0]               row_reg;
  logic                     ends_reg;
  gradient_t [RowLanes-1:0] chosen_reg;

  for (genvar t = 0; t < Rows; t++) begin : gen_row
    assign next_ends[t] = place_reg[AtWrite+t-1].valid && place_reg[AtWrite+t-1].last;
  end

  always_ff @(posedge clk) begin
    row_reg    <= {next_ends[3] || next_ends[2], next_ends[3] || next_ends[1]};
    ends_reg   <= |next_ends;
    chosen_reg <= ends_reg ? sums[row_reg] : '0;
  end

  // ---- the update -------------------------------------------------------------------------------------------------
  logic [RowLanes-1:0] cut;

  for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
    gradient_t                    loss;
    logic                         up;
    logic signed [GradientBits:0] more_reg;
    weight_t                      weight_reg;
    logic                         cut_reg;
    logic signed [WeightBits-1:0] old;

    rounding_shift #(.WIDTH(GradientBits), .SHIFT_BITS(6)) shifter (
        .clk, .shift, .d(chosen_reg[i]), .q(loss), .up
    );

    always_comb begin
      old = '0;
      for (int unsigned t = 0; t < Rows; t++) old |= weights[t][WeightBits*i+:WeightBits];
    end

    // x - (loss + up) as its complement: then a LUT a bit takes the four memories' words and the loss
    wire signed [GradientBits:0] more = (GradientBits + 1)'(loss) + ~(GradientBits + 1)'(old) + (GradientBits + 1)'(up);
    wire signed [GradientBits:0] less = ~more_reg;
    wire high = !less[GradientBits] && |less[GradientBits-1:WeightBits-1];
    wire low  = less[GradientBits] && (!(&less[GradientBits-1:WeightBits-1]) || less[WeightBits-2:0] == '0);

    always_ff @(posedge clk) begin
      more_reg   <= more;
      weight_reg <= load ? load_weights[WeightBits*i+:WeightBits]
                         : high ? WeightLimit : low ? -WeightLimit : less[WeightBits-1:0];
      cut_reg    <= high || low;
    end

    assign write_weights[WeightBits*i+:WeightBits] = weight_reg;
    assign cut[i] = cut_reg;
  end

  // ---- memory of weights -------------------------------------------------------------------------------------------
  logic                 load_reg;
  logic [ChunkBits+1:0] load_row_reg;
  logic [Rows-1:0]      updated;

  always_ff @(posedge clk) begin
    credit       <= updated[0] && !rst;
    load_reg     <= load && !rst;
    load_row_reg <= load_row;
  end

  for (genvar t = 0; t < Rows; t++) begin : gen_port
    assign read[t]        = place_reg[AtWeight+t].valid && place_reg[AtWeight+t].last;
    assign read_chunk[t]  = place_reg[AtWeight+t].index;
    assign updated[t]     = place_reg[AtEnd+t].valid && place_reg[AtEnd+t].last;
    assign write[t]       = updated[t] || (load_reg && load_row_reg[1:0] == 2'(t));
    assign write_chunk[t] = load_reg ? load_row_reg[ChunkBits+1:2] : place_reg[AtEnd+t].index;
  end

  always_comb begin
    saturated = 5'd0;
    for (int unsigned i = 0; i < RowLanes; i++) saturated += 5'(cut[i] && |updated);
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk) begin
    if (!rst) a_one_row : assert ($onehot0(next_ends) && $onehot0(updated) && !(load && busy));
  end
`endif

endmodule : gradient_update

// Backward propagation of an engine: replays the planes that the forward propagation read, gathers them to features, and
// multiplies these by the samples' scales: each lane's sum over 8 banks and over the mini-batch so far (Algorithm 1,
// line 32).  A chunk takes as many clocks as it has planes; at least four, its rows, in a mini-batch's last micro-batch, for
// the update takes one row a clock; a micro-batch takes at least four, so that its sums are in memory for the next one.
// Bank k lags bank k - 1 by a clock and row t, lanes 16 t .. 16 t + 15, lags row t - 1, so that the sums pass from one
// multiplier to the next and an update's rows leave one a clock.
//
//   clock 0       a chunk's last plane is issued
//   clock 1       the chunk's position is given out
//   clock 2+k+t   bank k's features of row t are whole
//   clock 12+t    row t of the sums is at `m_sums`
module backward
  import glm_numbers_pkg::*;
  import glm_pkg::*;
(
    input  logic                      clk,
    input  logic                      rst,
    input  training_t                 training,
    input  logic                      start,
    output logic                      busy,

    input  logic [WordBits-1:0]       s_word,
    input  logic                      s_word_valid,
    output logic                      s_word_ready,

    // a micro-batch's scales have entered the queue at whose end `scales` are; they are taken when the first chunk needs them
    input  logic                      scales_entered,
    input  scales_t                   scales_in,
    output logic                      scales_taken,

    // a chunk, eleven clocks ahead of the sums of its row 0
    output logic                      chunk_valid,
    output logic [ChunkIndexBits-1:0] chunk_index,
    // of its micro-batch in its mini-batch
    output logic                      chunk_first,
    output logic                      chunk_last,

    // of row t, 10 + t clocks behind its chunk's position: what its products are added to, unless it begins anew
    input  gradient_t [Rows-1:0][RowLanes-1:0] so_far,
    input  logic      [Rows-1:0]               so_far_valid,
    // a clock later
    output gradient_t [Rows-1:0][RowLanes-1:0] m_sums
);

  // ---- order of work ------------------------------------------------------------------------------------------
  logic                      running;
  logic [ChunkIndexBits-1:0] chunk;
  logic                      last_of_all;  // chunks
  logic                      batch_first;
  logic                      batch_last;

  logic [4:0]                plane_reg;
  logic [2:0]                pace_reg;   // clocks since the micro-batch's first plane, in the last one the chunk's; up to four
  logic [4:0]                known_reg;  // micro-batches that have scales and have not begun

  wire first     = plane_reg == 5'd0;
  wire may_begin = chunk != '0 || known_reg != 5'd0;
  wire wants     = running && (first ? may_begin : plane_reg != training.bits);
  wire issue     = wants && s_word_valid;
  wire paced      = batch_last || last_of_all;
  wire pace_ends  = !paced || pace_reg >= 3'(Rows - 1);
  wire last_plane = issue && plane_reg + 5'd1 == training.bits;
  wire chunk_done = pace_ends && (last_plane || plane_reg == training.bits);

  assign s_word_ready = wants;
  assign busy         = running;

  progress order (
      .clk, .rst, .training, .start,
      .step(chunk_done), .running, .chunk, .chunk_last(last_of_all), .batch_first, .batch_last
  );

  always_ff @(posedge clk) begin
    if (rst || start) begin
      plane_reg <= '0;
      pace_reg  <= '0;
      known_reg <= '0;
    end else begin
      if (chunk_done) plane_reg <= '0;
      else if (issue) plane_reg <= plane_reg + 5'd1;
      if (chunk_done && paced) pace_reg <= '0;
      else if (pace_reg != 3'(Rows) && (pace_reg != '0 || issue)) pace_reg <= pace_reg + 3'd1;
      known_reg <= known_reg + 5'(scales_entered) - 5'(issue && first && chunk == '0);
    end
  end

  // ---- a chunk's position -----------------------------------------------------------------------------------------
  logic                      valid_reg;
  logic [ChunkIndexBits-1:0] index_reg;
  logic [1:0]                place_reg;  // first and last micro-batch of its mini-batch

  always_ff @(posedge clk) begin
    index_reg <= chunk;
    place_reg <= {batch_first, batch_last};
    valid_reg <= last_plane && !rst && !start;
  end

  assign chunk_valid               = valid_reg;
  assign chunk_index               = index_reg;
  assign {chunk_first, chunk_last} = place_reg;

  // The first chunk of a micro-batch takes the scales along.
  assign scales_taken = valid_reg && index_reg == '0;

  // ---- banks -----------------------------------------------------------------------------------------------------
  logic [Banks+Rows-2:0] plane_line_reg;  // [i]: a plane was issued i + 1 clocks ago
  logic [Banks+Rows-2:0] first_line_reg;  // and it was its chunk's first

  always_ff @(posedge clk) begin
    plane_line_reg <= {plane_line_reg[Banks+Rows-3:0], issue};
    first_line_reg <= {first_line_reg[Banks+Rows-3:0], issue && first};
  end

  logic    [Rows-1:0][RowLanes-1:0][Banks-1:0][Planes-1:0] features;
  scales_t [Rows-1:0]                                      scales;

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    logic                           next;
    logic [ScaleBits-1:0]           offered;
    logic [Rows-1:0][ScaleBits-1:0] scale_reg;

    delay_line #(.WIDTH(1), .STAGES(k)) next_to_bank (.clk, .d(scales_taken), .q(next));
    delay_line #(.WIDTH(ScaleBits), .STAGES(k)) scale_to_bank (.clk, .d(scales_in[k]), .q(offered));

    always_ff @(posedge clk) begin
      if (next) scale_reg[0] <= offered;
      for (int unsigned t = 1; t < Rows; t++) scale_reg[t] <= scale_reg[t-1];
    end

    for (genvar t = 0; t < Rows; t++) begin : gen_row
      logic [RowLanes-1:0]             bits;
      logic [RowLanes-1:0][Planes-1:0] feature_reg;

      delay_line #(.WIDTH(RowLanes), .STAGES(k + t + 1)) to_row (
          .clk, .d(s_word[Chunk*k+RowLanes*t+:RowLanes]), .q(bits)
      );

      // A chunk's first plane clears those of the chunk before.
      always_ff @(posedge clk) begin
        for (int unsigned i = 0; i < RowLanes; i++) begin
          if (plane_line_reg[k+t]) feature_reg[i][0] <= bits[i];
          if (first_line_reg[k+t]) feature_reg[i][Planes-1:1] <= '0;
          else if (plane_line_reg[k+t]) feature_reg[i][Planes-1:1] <= feature_reg[i][Planes-2:0];
        end
      end

      assign scales[t][k] = scale_reg[t];
      for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
        assign features[t][i][k] = feature_reg[i];
      end
    end
  end

  for (genvar t = 0; t < Rows; t++) begin : gen_row
    for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
      product_column column (
          .clk, .scales(scales[t]), .features(features[t][i]),
          .base(so_far[t][i]), .with_base(so_far_valid[t]), .sum(m_sums[t][i])
      );
    end
  end

endmodule : backward

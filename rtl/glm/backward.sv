// Backward propagation of an engine: replays the planes that the forward propagation read, gathers them to features, and
// multiplies these by the samples' scales: 16 lanes a clock, each the sum over 8 banks and over the mini-batch so far
// (Algorithm 1, line 32).
// Bank k lags bank k - 1 by a clock and lanes 16 t .. 16 t + 15 lag by t, so that the sums pass from one multiplier to the
// next and rows leave one a clock.
//
//   clock 0       a chunk's last plane is issued
//   clock 2+k+t   bank k's features of row t are whole; the row's position enters the pipeline at 2+t
//   clock 13+t    row t of the sums is at `m_sums`
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

    // a micro-batch's scales have entered the queue at whose end `scales` are; they are taken when the first row needs them
    input  logic                      scales_entered,
    input  scales_t                   scales_in,
    output logic                      scales_taken,

    // eleven clocks ahead of its sums
    output logic                      row_valid,
    output logic [ChunkIndexBits+1:0] row_index,
    // of its micro-batch in its mini-batch
    output logic                      row_first,
    output logic                      row_last,

    // ten clocks behind the row's position: what its products are added to, unless it begins anew
    input  gradient_t [RowLanes-1:0]  so_far,
    input  logic                      so_far_valid,
    // a clock later
    output gradient_t [RowLanes-1:0]  m_sums
);

  // ---- order of work ------------------------------------------------------------------------------------------
  logic                      running;
  logic [ChunkIndexBits-1:0] chunk;
  logic                      batch_first;
  logic                      batch_last;

  logic [4:0]                plane_reg;
  logic [2:0]                pace_reg;   // clocks since its first plane, up to a chunk's four rows
  logic [4:0]                known_reg;  // micro-batches that have scales and have not begun

  wire first     = plane_reg == 5'd0;
  wire may_begin = pace_reg == 3'd0 && (chunk != '0 || known_reg != 5'd0);
  wire wants     = running && (first ? may_begin : plane_reg != training.bits);
  wire issue     = wants && s_word_valid;
  wire [4:0] planes_after = plane_reg + 5'(issue);
  wire [2:0] pace_after   = pace_reg + 3'(pace_reg == 3'd0 ? issue : pace_reg != 3'(Rows));
  wire last_plane = issue && planes_after == training.bits;
  wire chunk_done = planes_after == training.bits && pace_after == 3'(Rows);

  assign s_word_ready = wants;
  assign busy         = running;

  progress order (
      .clk, .rst, .training, .start,
      .step(chunk_done), .running, .chunk, .chunk_last(), .batch_first, .batch_last
  );

  always_ff @(posedge clk) begin
    if (rst || start) begin
      plane_reg <= '0;
      pace_reg  <= '0;
      known_reg <= '0;
    end else begin
      plane_reg <= chunk_done ? '0 : planes_after;
      pace_reg  <= chunk_done ? '0 : pace_after;
      known_reg <= known_reg + 5'(scales_entered) - 5'(issue && first && chunk == '0);
    end
  end

  // ---- rows: four clocks after a chunk's last plane ---------------------------------------------------------------
  logic                      ended_reg;
  logic                      active_reg;
  logic [ChunkIndexBits-1:0] ended_chunk_reg;
  logic [1:0]                ended_place_reg;  // first and last micro-batch of its mini-batch
  logic [ChunkIndexBits+1:0] index_reg;
  logic [1:0]                place_reg;

  always_ff @(posedge clk) begin
    ended_chunk_reg <= chunk;
    ended_place_reg <= {batch_first, batch_last};
    if (ended_reg) begin
      index_reg <= {ended_chunk_reg, 2'd0};
      place_reg <= ended_place_reg;
    end else index_reg <= index_reg + 1'b1;
    if (rst || start) begin
      ended_reg  <= 1'b0;
      active_reg <= 1'b0;
    end else begin
      ended_reg  <= last_plane;
      active_reg <= ended_reg || (active_reg && index_reg[1:0] != 2'd3);
    end
  end

  assign row_valid              = active_reg;
  assign row_index              = index_reg;
  assign {row_first, row_last}  = place_reg;

  // The first row of a micro-batch takes the scales along.
  assign scales_taken = active_reg && index_reg == '0;

  // ---- banks -----------------------------------------------------------------------------------------------------
  logic [Banks+Rows-2:0] valid_reg;  // [i]: a plane was issued i + 1 clocks ago
  logic [Planes-1:0]     used;       // bits of a feature

  always_ff @(posedge clk) begin
    valid_reg <= {valid_reg[Banks+Rows-3:0], issue};
  end

  for (genvar b = 0; b < Planes; b++) begin : gen_used
    assign used[b] = 5'(b) < training.bits;
  end

  logic [RowLanes-1:0][Banks-1:0][Planes-1:0] features;
  scales_t                                    scales;

  for (genvar k = 0; k < Banks; k++) begin : gen_bank
    logic [Chunk-1:0]               word;
    logic [1:0]                     row;
    logic                           next;
    logic [ScaleBits-1:0]           offered;
    logic [ScaleBits-1:0]           scale_reg;
    logic [RowLanes-1:0][Planes-1:0] gathered_reg[Rows];

    delay_line #(.WIDTH(Chunk), .STAGES(k + 1)) to_bank (.clk, .d(s_word[Chunk*k+:Chunk]), .q(word));
    delay_line #(.WIDTH(3), .STAGES(k)) row_to_bank (.clk, .d({scales_taken, index_reg[1:0]}), .q({next, row}));
    delay_line #(.WIDTH(ScaleBits), .STAGES(k)) scale_to_bank (.clk, .d(scales_in[k]), .q(offered));

    for (genvar t = 0; t < Rows; t++) begin : gen_row
      logic [RowLanes-1:0] bits;
      delay_line #(.WIDTH(RowLanes), .STAGES(t)) to_row (.clk, .d(word[RowLanes*t+:RowLanes]), .q(bits));
      always_ff @(posedge clk) begin
        if (valid_reg[k+t]) begin
          for (int unsigned i = 0; i < RowLanes; i++) begin
            gathered_reg[t][i] <= {gathered_reg[t][i][Planes-2:0], bits[i]};
          end
        end
      end
    end

    // What lies above the planes that are read is left from the chunk before.
    logic [RowLanes-1:0][Planes-1:0] feature_reg;
    always_ff @(posedge clk) begin
      for (int unsigned i = 0; i < RowLanes; i++) begin
        for (int unsigned b = 0; b < Planes; b++) begin
          if (!used[b]) feature_reg[i][b] <= 1'b0;
          else feature_reg[i][b] <= gathered_reg[row][i][b];
        end
      end
      if (next) scale_reg <= offered;
    end

    assign scales[k] = scale_reg;
    for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
      assign features[i][k] = feature_reg[i];
    end
  end

  for (genvar i = 0; i < RowLanes; i++) begin : gen_lane
    product_column column (.clk, .scales, .features(features[i]), .base(so_far[i]), .with_base(so_far_valid), .sum(m_sums[i]));
  end

endmodule : backward

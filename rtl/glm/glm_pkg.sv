// The shape of a P4SGD worker (docs/explanation/rtl-glm.md) and its settings.  The numbers' widths are in glm_numbers_pkg.
package glm_pkg;
  import glm_numbers_pkg::*;
  import transport_pkg::address_settings_t;
  import transport_pkg::reject_t;

  // A chunk's weights lie in the model memory as rows of RowLanes, each in a memory of its own, so that all four may be read in one
  // clock; a chunk's row t is worked on t clocks after its row 0.
  localparam int unsigned Rows     = Chunk / RowLanes;
  localparam int unsigned RowBits  = RowLanes * WeightBits;
  // 64 features of 8 samples, a bit of each
  localparam int unsigned WordBits = Banks * Chunk;
  localparam int unsigned WordBytes = WordBits / 8;
  // an engine's words of a chunk, read or not
  localparam int unsigned ChunkBytes = Planes * WordBytes;
  // sum of a chunk over its planes
  localparam int unsigned ChunkSumBits = WeightBits + $clog2(Chunk) + Planes;
  localparam int unsigned ChunkIndexBits = $clog2(EngineWeights / Chunk);

  typedef logic signed [WeightBits-1:0]      weight_t;
  typedef logic signed [ScaleBits-1:0]       scale_t;
  typedef logic signed [GradientBits-1:0]    gradient_t;
  typedef logic signed [AccumulatorBits-1:0] accumulator_t;
  typedef logic signed [31:0]                lane_t;
  typedef logic [Banks-1:0][AccumulatorBits-1:0] sums_t;
  typedef logic [Banks-1:0][ScaleBits-1:0]       scales_t;
  typedef logic [Banks-1:0][31:0]                lanes_t;

  // two weights and their sum: what one step of a bank chooses from
  typedef struct packed {
    logic signed [WeightBits:0]   sum;
    logic signed [WeightBits-1:0] odd;
    logic signed [WeightBits-1:0] even;
  } pair_t;

  // Stays as it is while a training runs.
  typedef struct packed {
    logic [4:0]              bits;           // planes that are read, 1..16
    logic [ChunkIndexBits:0] chunks;         // of an engine, 1..4096
    logic [31:0]             micro_batches;  // of an epoch, at least 1
    logic [31:0]             batch;          // micro-batches of a mini-batch, at least 1; an epoch's last may be short
    logic [15:0]             epochs;         // at least 1
    loss_t                   loss;
    logic [4:0]              forward_shift;  // a dot product, shifted right by this, is an activation: 1..24
    logic [15:0]             multiplier;     // of the step
    logic [5:0]              update_shift;   // a gradient, shifted right by this, is what a weight loses: 0..47
  } training_t;

  // The stream of rounds.  Everything but `enable` stays as it is while `enable` is high.
  typedef struct packed {
    logic              enable;    // rises: rounds begin at base_seq
    logic [15:0]       gen;
    logic [31:0]       base_seq;
    logic [15:0]       slots;     // of the switch for this job, a power of two; a build uses no more than it has
    logic [31:0]       rto;       // clocks without an answer before a round is repeated; doubled each time, up to 8 times
    logic [7:0]        wid;
    address_settings_t address;
  } rounds_t;

  // since reset
  typedef struct packed {
    logic [31:0] begun;      // rounds
    logic [31:0] repeated;   // frames sent again
    logic [31:0] sums;       // taken
    logic [31:0] confirmed;  // rounds
    logic [31:0] unasked;    // good frames that no round waited for
    logic [31:0] refused;    // frames
    reject_t     reason;     // of the last one refused
  } round_counts_t;

  typedef struct packed {
    round_counts_t rounds;          // since reset, the rest since the start
    logic [31:0]   clocks;          // that an engine worked
    logic [31:0]   starved;         // clocks in which an engine waited for memory
    logic [31:0]   saturated;       // partial activations and weights that were cut
    logic          peer_saturated;  // a sum had a part that was
    logic          error;           // memory answered with an error
  } worker_counts_t;

  // each high for a clock
  typedef struct packed {
    logic sums;    // a micro-batch's sums of all engines are taken
    logic sent;    // its frame is in the MAC, or another
    logic full;    // its full activations are taken
    logic scales;  // and have become scales
  } worker_events_t;

endpackage : glm_pkg

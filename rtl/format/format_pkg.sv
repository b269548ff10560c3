// The parameters that convert a vector: its element type, its shared exponent E and its headroom (docs/explanation/protocol.md,
// "Numbers"), and whether a lane holds two numbers (docs/explanation/packed-lanes.md).
package format_pkg;
  import catchment_wire_pkg::data_type_t;

  // h = ceil(log2 workers), 0..6 for up to 64 workers
  localparam int unsigned HeadroomBits = 3;

  typedef struct packed {
    logic                    full;   // the workers are 2^h: the largest number of a packed lane is one less than 2^(15-h)
    logic                    pairs;  // packed lanes: two 16-bit numbers in each
    data_type_t              dtype;
    logic signed [7:0]       exponent;
    logic [HeadroomBits-1:0] headroom;
  } format_t;

  // Pipeline depths that a converter lane may have.
  localparam int unsigned MaxStages = 3;

  // Which of the cuts after unpack, shift and round hold a register when a lane is `stages` deep: the last first, since
  // the output of a lane should be a register.
  function automatic logic [MaxStages-1:0] cuts(int unsigned stages);
    case (stages)
      1: return 3'b100;
      2: return 3'b110;
      default: return 3'b111;
    endcase
  endfunction

endpackage : format_pkg

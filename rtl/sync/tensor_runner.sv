// Cuts tensors into chunks for one sync_core, and says when all of one is in memory.
//
// Segments have an eighth of what a device's share of the tensor has, within `least` and ENTRIES: the last pass of the last
// chunk runs alone, so it should be short, but a segment shorter than a hop makes the ring wait.  All chunks but the last have
// segments of one length: a chunk's first pass runs beside the last one of the chunk before, and the longer one bounds.
module tensor_runner
  import sync_pkg::*;
#(
    // entries of the longest segment; a power of two
    parameter int unsigned ENTRIES = 256,
    parameter int unsigned ENTRY_BITS = 16,
    parameter int unsigned ADDRESS_BITS = 32
) (
    input  logic                    clk,
    input  logic                    rst,

    // number of devices, less one
    input  logic [3:0]              last,
    // entries of the shortest segment but for what is left, 1..ENTRIES
    input  logic [$clog2(ENTRIES):0] least,

    input  tensor_t                 s_tensor,
    input  work_t                   s_work,
    input  logic                    s_valid,
    output logic                    s_ready,

    output logic                    start_valid,
    input  logic                    start_ready,
    output logic [ADDRESS_BITS-1:0] start_address,
    output logic [ENTRY_BITS-1:0]   start_entries,
    output logic [ENTRY_BITS-1:0]   start_segment,
    output logic                    start_maximum,
    // a chunk is in memory
    input  logic                    written,

    // high for a clock: the tensor is in memory
    output logic                    done,
    output tensor_t                 done_tensor
);

  localparam int unsigned SegmentBits = $clog2(ENTRIES);
  // chunks that are under way, at most
  localparam int unsigned Chunks = 16;

  typedef enum logic [2:0] {IDLE, MEASURE, BEGIN_SEARCH, SEARCH, OFFER} state_t;
  typedef struct packed {
    logic    ends;
    tensor_t tensor;
  } chunk_t;

  state_t                 state_reg;
  tensor_t                tensor_reg;
  work_t                  left_reg;   // what is left of the tensor
  logic [SegmentBits:0]   most_reg;   // entries of a segment at most
  // The search for ceil(left / devices): the largest s with s < most and s * devices < left, a bit a clock.
  logic [SegmentBits-1:0] found_reg;
  logic [SegmentBits-1:0] bit_reg;
  logic [SegmentBits+4:0] product_reg;

  wire [4:0] devices = 5'(last) + 5'd1;
  // by 8 times the number of devices, rounded up to a power of two
  wire [2:0] shift = last[3] ? 3'd7 : last[2] ? 3'd6 : last[1] ? 3'd5 : 3'd4;
  wire [WorkBits-1:0] eighth = left_reg.entries >> shift;
  wire [SegmentBits-1:0] tried = found_reg | bit_reg;
  logic [SegmentBits+4:0] tried_product, trial_reg;
  wire fits = (SegmentBits + 1)'(tried) < most_reg && WorkBits'(tried_product) < left_reg.entries;
  wire [SegmentBits+4:0] chunk_product = product_reg + (SegmentBits + 5)'(devices);
  wire ends = WorkBits'(chunk_product) >= left_reg.entries;
  wire started = start_valid && start_ready;

  logic   room, first_valid;
  chunk_t first;
  wire chunk_t offered = '{ends: ends, tensor: tensor_reg};

  assign tried_product = product_reg + trial_reg;
  assign s_ready = state_reg == IDLE;
  assign start_valid = state_reg == OFFER && room;
  assign start_address = left_reg.address;
  assign start_entries = ends ? ENTRY_BITS'(left_reg.entries) : ENTRY_BITS'(chunk_product);
  assign start_segment = ENTRY_BITS'(found_reg) + 1'b1;
  assign start_maximum = left_reg.maximum;

  always_ff @(posedge clk) begin
    unique case (state_reg)
      IDLE: begin
        tensor_reg <= s_tensor;
        left_reg   <= s_work;
      end
      MEASURE, BEGIN_SEARCH: begin
        if (state_reg == MEASURE) begin
          most_reg <= eighth > WorkBits'(ENTRIES) ? (SegmentBits + 1)'(ENTRIES)
                      : eighth < WorkBits'(least) ? least : eighth[SegmentBits:0];
        end
        found_reg   <= '0;
        product_reg <= '0;
        bit_reg     <= SegmentBits'(1) << (SegmentBits - 1);
        trial_reg   <= (SegmentBits + 5)'(devices) << (SegmentBits - 1);
      end
      SEARCH: begin
        if (fits) begin
          found_reg   <= tried;
          product_reg <= tried_product;
        end
        bit_reg   <= bit_reg >> 1;
        trial_reg <= trial_reg >> 1;
      end
      default: if (started) begin
        left_reg.address <= left_reg.address + ADDRESS_BITS'(chunk_product);
        left_reg.entries <= left_reg.entries - WorkBits'(chunk_product);
      end
    endcase
    if (rst) begin
      state_reg <= IDLE;
    end else begin
      unique case (state_reg)
        IDLE:    if (s_valid) state_reg <= MEASURE;
        MEASURE, BEGIN_SEARCH: state_reg <= SEARCH;
        SEARCH:  if (bit_reg[0]) state_reg <= OFFER;
        default: if (started) state_reg <= ends ? IDLE : BEGIN_SEARCH;
      endcase
    end
  end

  sync_fifo #(.WIDTH($bits(chunk_t)), .DEPTH(Chunks), .RAM_STYLE("distributed")) chunks (
      .clk, .rst, .s_data(offered), .s_valid(started), .s_ready(room),
      .m_data(first), .m_valid(first_valid), .m_ready(written), .level()
  );
  assign done = written && first.ends;
  assign done_tensor = first.tensor;

`ifdef VERILATOR
  a_known_chunk :
  assert property (@(posedge clk) disable iff (rst) written |-> first_valid)
  else $error("%m: a chunk was written that was not started");
`else
  wire unused = &{1'b0, first_valid};
`endif

endmodule : tensor_runner

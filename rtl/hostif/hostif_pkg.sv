// What travels between the parts of the host interface (LuWu, Figure 7 and Table 1).
package hostif_pkg;
  import catchment_wire_pkg::data_type_t;
  import catchment_wire_pkg::DATA_TYPE_BYTES;
  import catchment_wire_pkg::DATA_TYPE_INT32;
  import catchment_wire_pkg::DATA_TYPE_FP32;
  import catchment_wire_pkg::DATA_TYPE_FP16;
  import catchment_wire_pkg::DATA_TYPE_BF16;

  // bytes of a memory beat
  localparam int unsigned BeatBytes = 64;
  // a virtual address has these bits; higher ones must be zero
  localparam int unsigned VirtualBits = 48;
  localparam int unsigned PhysicalBits = 64;
  // 2 MiB pages
  localparam int unsigned PageShift = 21;
  localparam int unsigned VpnBits = VirtualBits - PageShift;
  localparam int unsigned PpnBits = PhysicalBits - PageShift;
  // no AXI4 burst crosses a multiple of this
  localparam int unsigned AxiBoundaryBytes = 4096;
  localparam int unsigned SegmentBytesBits = 13;
  // a completion record, which lies on a multiple of its size
  localparam int unsigned CompletionBytes = 32;

  typedef logic [VpnBits-1:0] vpn_t;
  typedef logic [PpnBits-1:0] ppn_t;
  typedef logic [PhysicalBits-1:0] physical_t;

  // a bit per data_type_t
  typedef logic [7:0] type_set_t;
  localparam type_set_t ByteTypes = 8'd1 << DATA_TYPE_BYTES;
  localparam type_set_t PairTypes = 8'd1 << DATA_TYPE_FP32 | 8'd1 << DATA_TYPE_FP16 | 8'd1 << DATA_TYPE_BF16;
  localparam type_set_t LaneTypes = PairTypes | 8'd1 << DATA_TYPE_INT32;

  // How a request ended; the first byte of its completion record.
  typedef enum logic [7:0] {
    STATUS_PENDING         = 8'd0,  // the host writes it there before it asks; the NIC never does
    STATUS_OK              = 8'd1,
    STATUS_BAD_LENGTH      = 8'd2,  // zero, or no whole number of elements
    STATUS_BAD_ALIGNMENT   = 8'd3,  // the buffer is not on a multiple of a memory beat
    STATUS_BAD_TYPE        = 8'd4,  // no element type that this direction carries
    STATUS_UNMAPPED        = 8'd5,  // a page of the buffer is not in the TLB: nothing moved
    STATUS_UNMAPPED_LATER  = 8'd6,  // a page left the TLB while the request ran: zeros were pushed, or nothing written there
    STATUS_BUS_ERROR       = 8'd7,  // memory answered with an error
    STATUS_LENGTH_MISMATCH = 8'd8,  // the message is longer or shorter than the pull
    STATUS_TYPE_MISMATCH   = 8'd9,  // integers were pushed and floats are pulled
    STATUS_EXPONENT_MISMATCH = 8'd10,  // the shared exponent changed within a message of floats, or not all announced theirs
    STATUS_BAD_SCALING     = 8'd11, // block scaling of what cannot be: integers, not in all-reduce, or more slots than fit
    STATUS_LANES_MISMATCH  = 8'd12  // a sum whose lanes are packed otherwise than the stream's, or were not so at all workers
  } status_t;

  // a push or a pull as the host asks for it
  typedef struct packed {
    logic [63:0]       vaddr;
    logic [31:0]       len;       // bytes
    logic [63:0]       cmpt_ptr;  // virtual address of the completion record
    data_type_t        dtype;
    logic signed [7:0] exponent;  // push: the shared E, unless every vector has its own
    logic              block;     // every vector has its own E, on which the workers agree
    logic [15:0]       tag;       // comes back in the completion
    logic [31:0]       started;   // when it was queued, in clocks
  } request_t;

  // A request that the segmenter has looked at; its data follow unless status says otherwise.
  typedef struct packed {
    status_t           status;
    physical_t         completion;
    logic [31:0]       len;
    data_type_t        dtype;
    logic signed [7:0] exponent;
    logic              block;
    logic [15:0]       tag;
    logic [31:0]       started;
  } job_t;

  // How a vector of a block-scaled message leaves.
  typedef struct packed {
    logic              announces;  // it is zeros, and before the data
    logic              last;       // of the announcements
    logic signed [7:0] exponent;   // the vector's E
    logic              expv;       // next_exp is valid
    logic signed [7:0] next_exp;   // what the vector T further needs
  } vector_scale_t;

  // A segment: a piece of a request that lies in one 4 KiB block.
  typedef struct packed {
    physical_t                   address;   // on a beat
    logic [SegmentBytesBits-1:0] bytes;     // 1..4096
    logic                        last;      // the segment is the last of its request
    logic                        unmapped;  // address is void
  } segment_t;

  // the end of a request
  typedef struct packed {
    physical_t         address;
    status_t           status;
    logic [7:0]        flags;      // the frames' header flags, ORed
    logic [15:0]       tag;
    logic [31:0]       bytes;      // moved
    logic [31:0]       saturated;  // push: values cut, the non-finite included
    logic [31:0]       nonfinite;  // push: NaN and infinities
    logic signed [7:0] exponent;
    logic signed [7:0] needed;     // push: the smallest E that holds all finite values
    logic [31:0]       started;
  } completion_t;

  // what the host finds at its completion pointer: little-endian, the last field first in memory; rtl/registers.toml
  // names it, and the driver's record, the C++ struct and docs/reference/registers.md are generated from here
  typedef struct packed {
    logic [31:0]        reserved_end;
    logic [31:0]        latency;    // clocks from the request to the record
    logic [15:0]        reserved_exponent;
    logic signed [7:0]  needed;     // push: the smallest E that holds all finite values of the message
    logic signed [7:0]  exponent;   // shared E of the message; of a block-scaled pull the largest of its vectors'
    logic [31:0]        nonfinite;  // push: NaN and infinities among the values
    logic [31:0]        saturated;  // push: values that were cut, NaN and infinities included
    logic [31:0]        reserved_bytes;
    logic [31:0]        bytes;      // moved
    logic [15:0]        tag;        // of the request
    logic [7:0]         flags;      // of the message's frames, ORed
    status_t            status;     // 0 until the record is written
  } record_t;

  // Events that the statistics count: each but the values is high for one clock.
  typedef struct packed {
    logic        push_refused;         // the queue was full
    logic        pull_refused;
    logic        push_missed;          // a page was not in the TLB
    logic        pull_missed;
    logic [63:0] push_missed_address;
    logic [63:0] pull_missed_address;
    logic        push_unanswerable;    // no page for the completion: the request was dropped
    logic        pull_unanswerable;
    logic        bus_error;            // memory refused a beat
    logic        done;                 // a completion record is in memory
    logic        done_lost;            // with `done`: memory refused that record
    logic        done_is_pull;
    status_t     done_status;
    logic [31:0] done_bytes;
    logic [31:0] done_saturated;
    logic [31:0] done_nonfinite;
    logic [31:0] done_latency;
  } host_events_t;

  // Stalls that the statistics count: each is high in the clocks in which something waits.
  typedef struct packed {
    logic push_memory;     // a push waits for memory
    logic push_transport;  // a vector waits for the transport
    logic pull_waits;      // a pull waits for its message
    logic vector_waits;    // a vector waits for a pull
    logic pull_memory;     // a pull waits for memory
  } host_stalls_t;

  // log2 of an element's bytes
  function automatic logic [1:0] element_shift(data_type_t dtype);
    case (dtype)
      DATA_TYPE_BYTES: return 2'd0;
      DATA_TYPE_FP16, DATA_TYPE_BF16: return 2'd1;
      default: return 2'd2;
    endcase
  endfunction

  // the first bytes of a beat; 0: all of them
  function automatic logic [BeatBytes-1:0] kept(logic [5:0] bytes);
    return bytes == 6'd0 ? '1 : (BeatBytes'(1) << bytes) - BeatBytes'(1);
  endfunction

endpackage : hostif_pkg

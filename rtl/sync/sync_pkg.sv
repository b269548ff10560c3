// What travels on a link between two devices of a ring.
package sync_pkg;

  // Sequence numbers and credits count modulo this many bits; a window has at most half as many entries.
`ifdef FORMAL
  localparam int unsigned LinkSeqBits = 4;  // and a window of 4: a solver gets done
`else
  localparam int unsigned LinkSeqBits = 10;
`endif
  typedef logic [LinkSeqBits-1:0] link_seq_t;

  typedef enum logic [1:0] {
    FLIT_IDLE    = 2'd0,  // carries nothing but its header
    FLIT_DATA    = 2'd1,
    FLIT_MESSAGE = 2'd2
  } flit_kind_t;

  // A link carries a flit in each clock: this, an entry, and a CRC over both.
  typedef struct packed {
    flit_kind_t kind;
    link_seq_t  seq;             // of what it carries; of an idle one, of what comes next
    logic       epoch;           // turns over when the sender goes back
    // for the other direction
    link_seq_t  ack;             // all before this one have arrived
    logic       nak;             // one is missing: go back to `ack`
    logic       nak_epoch;       // the epoch in which it is missing
    link_seq_t  data_credit;     // data entries, counted from the beginning, for which there is room
    link_seq_t  message_credit;  // the same of messages
  } flit_header_t;

  localparam int unsigned EntryBits = 512;
  localparam int unsigned CrcBits = 32;
  localparam int unsigned CoveredBits = $bits(flit_header_t) + EntryBits;
  localparam int unsigned FlitBits = CoveredBits + CrcBits;

  typedef struct packed {
    flit_header_t         header;
    logic [EntryBits-1:0] data;
    logic [CrcBits-1:0]   crc;
  } flit_t;

  // A product of LUTs: four rows.
  function automatic logic [35:0] times(input logic [3:0] factor, input logic [31:0] value);
    logic [35:0] sum;
    sum = '0;
    for (int unsigned i = 0; i < 4; i++) begin
      if (factor[i]) sum += 36'(value) << i;
    end
    return sum;
  endfunction

  // Clocks that lane_alu takes.
  function automatic int unsigned alu_stages(input bit fp32);
    return fp32 ? 4 : 1;
  endfunction

  // ---- tensors, and what devices tell each other of them ---------------------------------------------------------
`ifdef FORMAL
  localparam int unsigned Tensors = 4;  // two of each group: enough for any order, and a solver gets done
`else
  localparam int unsigned Tensors = 32;
`endif
  localparam int unsigned TensorBits = $clog2(Tensors);
  typedef logic [TensorBits-1:0] tensor_t;

  // entries of a tensor
  localparam int unsigned WorkBits = 24;
  typedef struct packed {
    logic [31:0]         address;  // in entries
    logic [WorkBits-1:0] entries;
    logic                maximum;
  } work_t;

  typedef enum logic {
    MESSAGE_READY = 1'b0,  // to the group's leader: this tensor is there at `device`
    MESSAGE_GO    = 1'b1   // from the leader `device` around the ring: sum this tensor, the group's `turn`th
  } message_kind_t;

  typedef struct packed {
    message_kind_t kind;
    logic [3:0]    device;
    tensor_t       tensor;
    logic          urgent;
    logic [7:0]    turn;
  } message_t;

endpackage : sync_pkg

// A transport's settings, its status and counters, and its reasons to refuse a frame (docs/explanation/protocol.md).
package transport_pkg;
  import catchment_wire_pkg::*;

  // ---- beside a vector -----------------------------------------------------------------------------------
  // A vector crosses a stream as VECTOR_BYTES / 64 beats, tlast on the last of them.
  typedef struct packed {
    logic               foreign;   // on RX: the sum's lanes are not the stream's, or not of all workers
    data_type_t         dtype;
    logic signed [7:0]  exp;
    logic signed [7:0]  next_exp;
    logic               expv;      // next_exp is valid
    logic               sat;       // a value was cut or not finite; on TX any beat may say so
    logic               last;      // the last vector of a message
    logic        [15:0] bytes;     // PARAM: payload bytes, 1..VECTOR_BYTES; of a sum always VECTOR_BYTES
  } vector_meta_t;

  // From the host: taken with the last beat of the vector, but for `sat`, which is the OR over its beats.
  typedef vector_meta_t tx_meta_t;
  // To the host: the same on every beat.  PARAM: what lies behind `bytes` is not defined.
  typedef vector_meta_t rx_meta_t;

  // ---- roles ---------------------------------------------------------------------------------------------
  // Which end of a job a NIC and its transport are.
  typedef enum logic [0:0] {
    ROLE_WORKER = 1'd0,  // pushes gradients; pulls parameters, or sums in all-reduce
    ROLE_ROOT   = 1'd1   // pushes parameters, pulls sums
  } role_t;

  // ---- settings ------------------------------------------------------------------------------------------
  // One direction.  Everything but `enable` must stay as it is while `enable` is high.
  typedef struct packed {
    logic        enable;    // rises: the stream begins at base_seq with nothing sent, held or granted
    logic [15:0] gen;       // 0 is refused
    logic [31:0] base_seq;
    logic [15:0] window;    // D: frames in flight or held, 1..WINDOW of the build; anything else counts as WINDOW
    logic [20:0] slots;     // T: no credit may lie further beyond its ack
  } stream_settings_t;

  typedef struct packed {
    logic [47:0] local_mac;
    logic [47:0] peer_mac;    // the switch
    logic [31:0] local_ip;
    logic [31:0] peer_ip;
    logic [15:0] local_port;
    logic [15:0] peer_port;   // the switch's, UdpPort
  } address_settings_t;

  // In clocks; a timer waits at least TimerFloor, whatever is set.
  localparam logic [31:0] TimerFloor = 32'd64;

  typedef struct packed {
    logic [31:0] rto;                 // without progress for so long: resend
    logic [31:0] rto_most;            // doubled each time up to this
    logic [31:0] resend_delay;        // added to both: each worker's own, so that not all resend at once
    logic [31:0] heartbeat_interval;  // T_hb
  } timing_settings_t;

  typedef struct packed {
    stream_settings_t  tx;
    stream_settings_t  rx;          // all-reduce: the same stream
    address_settings_t address;
    timing_settings_t  timing;
    logic [7:0]        wid;
    logic              pairs;       // the stream of gradients and sums has packed lanes
    logic              all_reduce;  // WorkerNIC only: the sums come back to the workers
  } transport_settings_t;

  // The window that a setting means in a build with `places`.
  function automatic logic [15:0] window_of(logic [15:0] setting, logic [15:0] places);
    return setting - 16'd1 >= places ? places : setting;
  endfunction

  // ---- status --------------------------------------------------------------------------------------------
  typedef struct packed {
    logic        tx_ready;     // the stream has begun
    logic        rx_ready;
    logic [31:0] tx_acked;     // ma: everyone has all below
    logic [31:0] tx_next;      // first not sent yet
    logic [31:0] tx_end;       // first not accepted from the host yet
    logic [31:0] tx_credit;    // mc
    logic [31:0] rx_ack;       // first not received
    logic [31:0] rx_consumed;  // first not handed over
  } transport_status_t;

  // ---- rejects -------------------------------------------------------------------------------------------
  // In the order in which they are looked for, but for TAG; the first that applies is counted.
  typedef enum logic [3:0] {
    REJECT_NONE        = 4'd0,
    REJECT_FCS         = 4'd1,   // the MAC says that the frame is damaged
    REJECT_DESTINATION = 4'd2,   // not UDP from the switch to us
    REJECT_IPV4        = 4'd3,   // options, a fragment, or a wrong header checksum
    REJECT_SHORT       = 4'd4,   // ends before our header does
    REJECT_VERSION     = 4'd5,
    REJECT_FLAGS       = 4'd6,   // an unassigned flag, or ack and credit missing where they are the message
    REJECT_GENERATION  = 4'd7,   // no stream of this NIC, or one that has not begun
    REJECT_TYPE        = 4'd8,   // a type that this side of the stream does not take
    REJECT_DTYPE       = 4'd9,
    REJECT_LANES       = 4'd10,  // not the vector of this build, or no bytes, or too many
    REJECT_LENGTH      = 4'd11,  // lanes, UDP, IPv4 and the frame disagree
    REJECT_ACK         = 4'd12,  // acknowledges what was never sent, or more credit than the slots
    REJECT_WINDOW      = 4'd13,  // beyond the credit that was given
    REJECT_DUPLICATE   = 4'd14,  // already here
    REJECT_TAG         = 4'd15   // looked for behind FCS: its stream has a key, and its tag is wrong or missing
  } reject_t;

  // ---- statistics ----------------------------------------------------------------------------------------
  // Index of a 48-bit counter; those named *_CLOCKS count clocks, the others events or bytes.
  localparam int unsigned StatBits = 48;
  localparam int unsigned StatIndexBits = 6;

  typedef enum logic [StatIndexBits-1:0] {
    STAT_TX_VECTORS            = 6'd0,   // sent for the first time
    STAT_TX_RETRANSMISSIONS    = 6'd1,
    STAT_TX_HEARTBEATS         = 6'd2,
    STAT_TX_REQUESTS           = 6'd3,   // frames found missing and asked for
    STAT_TX_TIMEOUTS           = 6'd4,
    STAT_TX_CREDIT_CLOCKS      = 6'd5,   // stall: a vector waits for credit
    STAT_TX_WINDOW_CLOCKS      = 6'd6,   // stall: a vector waits for acknowledgements
    STAT_TX_LINK_CLOCKS        = 6'd7,   // stall: the MAC does not take a beat
    STAT_TX_RING_CLOCKS        = 6'd8,   // stall: the host offers a beat and the ring is full
    STAT_RX_FRAMES             = 6'd9,   // all that arrived
    STAT_RX_VECTORS            = 6'd10,  // taken
    STAT_RX_HEARTBEATS         = 6'd11,  // taken
    STAT_RX_REQUESTS           = 6'd12,  // frames that others asked for
    STAT_RX_SATURATED          = 6'd13,  // vectors taken with SAT
    STAT_RX_HOST_CLOCKS        = 6'd14,  // stall: the host does not take a beat
    STAT_RX_FULL_CLOCKS        = 6'd15,  // stall: all places of the window are full
    STAT_REJECTS               = 6'd16,  // 16 of them: STAT_REJECTS + reject_t
    STAT_TX_BYTES              = 6'd32,  // of frames, without FCS
    STAT_RX_BYTES              = 6'd33,
    STAT_ROUND_TRIPS           = 6'd34,  // from first transmission to acknowledgement, one at a time
    STAT_ROUND_TRIP_SUM_CLOCKS = 6'd35,
    STAT_ROUND_TRIP_MIN_CLOCKS = 6'd36,
    STAT_ROUND_TRIP_MAX_CLOCKS = 6'd37
  } stat_t;

endpackage : transport_pkg

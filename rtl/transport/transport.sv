// The transport of a WorkerNIC or an AggNIC: a sender and a consumer over one MAC (LuWu, section 3.2.3; docs/explanation/protocol.md).
//
//   host -> tx_ring -> frame_sender -> MAC         tx_ring keeps [ma, next) for retransmission
//               sender --^     ^-- heartbeat_gen
//   MAC -> frame_parser -> rx_ring -> host         rx_ring keeps what came before its turn
//               |-> sender (ack, credit)   consumer --^
`include "ports.svh"

module transport
  import serial_pkg::*;
  import transport_pkg::*;
#(
    // bytes of a vector, a multiple of 64 whose quotient is a power of two
    parameter int unsigned VECTOR_BYTES = 256,
    // places of each ring, a power of two
    parameter int unsigned WINDOW = 1024,
    // a root sends PARAM and takes FA; a worker sends PA and takes PARAM, or FA in all-reduce
    parameter bit ROLE = ROLE_WORKER
) (
    input  logic                     clk,
    input  logic                     rst,

    input  transport_settings_t      settings,
    output transport_status_t        status,
    // the counter that stat_index named two clocks ago
    input  logic [StatIndexBits-1:0] stat_index,
    output logic [StatBits-1:0]      stat_value,

    // vectors from the host, VECTOR_BYTES / 64 beats each; while the stream is disabled they are dropped
    `AXIS_VECTOR_IN_PORTS(s_axis_tx, tx_meta_t),

    // vectors to the host, in order
    `AXIS_VECTOR_OUT_PORTS(m_axis_rx, rx_meta_t),

    // frames from the MAC, without FCS; tuser with tlast: damaged.  tready is always high
    `AXIS_FRAME_IN_PORTS(s_axis_net),
    // on every beat of a frame: its tag is not the right one
    input  logic                     s_net_forged,

    // frames to the MAC, without gaps inside a frame
    `AXIS_KEEP_OUT_PORTS(m_axis_net)
);

  localparam bit          Root      = ROLE == ROLE_ROOT;
  localparam int unsigned Beats     = VECTOR_BYTES / 64;
  localparam int unsigned PlaceBits = $clog2(WINDOW);
  localparam int unsigned IndexBits  = Beats > 1 ? $clog2(Beats) : 1;

  if (VECTOR_BYTES % 64 != 0 || Beats != 1 << $clog2(Beats) || Beats > 128) begin : gen_bad_vector
    $fatal(1, "transport: VECTOR_BYTES must be 64, 128, .. 8192");
  end
  if (WINDOW < 4 || WINDOW != 1 << PlaceBits || WINDOW > 32768) begin : gen_bad_window
    $fatal(1, "transport: WINDOW must be a power of two, 4..32768");
  end

  // ---- streams begin and end -----------------------------------------------------------------------------
  logic tx_run_reg;
  logic tx_idle;  // no vector is being read for a frame
  logic rx_run;

  wire all_reduce = !Root && settings.all_reduce;
  wire carry      = all_reduce && rx_run;
  wire [15:0] tx_window = window_of(settings.tx.window, 16'(WINDOW));
  wire [15:0] rx_window = window_of(settings.rx.window, 16'(WINDOW));

  always_ff @(posedge clk) begin
    if (rst || !settings.tx.enable || settings.tx.gen == 16'd0) tx_run_reg <= 1'b0;
    else if (tx_idle) tx_run_reg <= 1'b1;
  end

  // ---- what arrives ------------------------------------------------------------------------------------------
  logic                 present;
  seq_t                 present_seq;
  seq_t                 present_ack;
  seq_t                 present_credit;
  logic                 impossible;
  logic                 outside;
  logic                 repeated;
  logic                 write;
  logic [PlaceBits-1:0] write_place;
  logic [IndexBits-1:0]  write_beat;
  logic [511:0]         write_data;
  logic                 frame_end;
  reject_t              frame_reject;
  logic [6:0]           beat_bytes;
  logic                 take;
  logic                 heard;
  logic                 request;
  logic                 heartbeat;
  seq_t                 frame_seq;
  rx_meta_t             frame_meta;

  frame_parser #(.VECTOR_BYTES(VECTOR_BYTES), .WINDOW(WINDOW)) parser (
      .clk,
      .rst,
      .address(settings.address),
      .tx_gen(settings.tx.gen),
      .rx_gen(settings.rx.gen),
      .tx_run(tx_run_reg),
      .rx_run,
      .sums(Root || all_reduce),
      .pairs(settings.pairs),
      .carry(all_reduce),
      `AXIS_FRAME_CONNECT(s_axis, s_axis_net),
      .s_forged(s_net_forged),
      .present,
      .present_seq,
      .present_ack,
      .present_credit,
      .impossible,
      .outside,
      .repeated,
      .write,
      .write_place,
      .write_beat,
      .write_data,
      .frame_end,
      .frame_reject,
      .beat_bytes,
      .take,
      .heard,
      .request,
      .heartbeat,
      .frame_seq,
      .frame_meta
  );

  // ---- receiving ---------------------------------------------------------------------------------------------
  logic rx_ready;
  logic rx_pop;
  logic rx_idle;
  seq_t rx_ack;
  seq_t rx_consumed;
  seq_t rx_credit;
  seq_t rx_highest;
  logic missing_valid;
  seq_t missing_seq;
  logic missing_ready;

  consumer #(.WINDOW(WINDOW)) receive (
      .clk,
      .rst,
      .enable(settings.rx.enable && settings.rx.gen != 16'd0),
      .base(settings.rx.base_seq),
      .window(rx_window),
      .reader_idle(rx_idle),
      .run(rx_run),
      .present_seq,
      .repeated,
      .outside,
      .take,
      .take_seq(frame_seq),
      .ready(rx_ready),
      .pop(rx_pop),
      .ack(rx_ack),
      .consumed(rx_consumed),
      .credit(rx_credit),
      .highest(rx_highest),
      .missing_valid,
      .missing_seq,
      .missing_ready
  );

  rx_ring #(.VECTOR_BYTES(VECTOR_BYTES), .WINDOW(WINDOW)) arrived (
      .clk,
      .rst,
      .write,
      .write_place,
      .write_beat,
      .write_data,
      .meta_write(take),
      .meta_data(frame_meta),
      .ready(rx_ready),
      .place(rx_consumed[PlaceBits-1:0]),
      .pop(rx_pop),
      .idle(rx_idle),
      `AXIS_VECTOR_CONNECT(m_axis, m_axis_rx)
  );

  // A worker of an all-reduce asks the switch for a sum by sending its own part again; others ask the sender.
  logic beat_valid;
  logic beat_optional;
  logic beat_missing;
  seq_t beat_seq;
  logic beat_ready;
  logic beat_missing_ready;
  logic send_valid;
  seq_t send_seq;
  logic send_again;
  logic send_ready;

  assign missing_ready = all_reduce ? !request : beat_missing_ready;

  heartbeat_gen beats (
      .clk,
      .run(rx_run),
      .base(settings.rx.base_seq),
      .window(rx_window),
      .interval(settings.timing.heartbeat_interval),
      .ack(rx_ack),
      .credit(rx_credit),
      .highest(rx_highest),
      .message_end(take && frame_meta.last),
      .duplicate(frame_end && frame_reject == REJECT_DUPLICATE),
      .carried(carry && send_valid && send_ready),
      .missing_valid(missing_valid && !all_reduce),
      .missing_seq,
      .missing_ready(beat_missing_ready),
      .m_valid(beat_valid),
      .m_optional(beat_optional),
      .m_missing(beat_missing),
      .m_seq(beat_seq),
      .m_ready(beat_ready)
  );

  // ---- sending -----------------------------------------------------------------------------------------------
  logic                 ring_full;
  logic                 put;
  seq_t                 acked;
  seq_t                 next;
  seq_t                 end_seq;
  seq_t                 credit;
  logic                 progress;
  logic                 timeout;
  logic                 lacks_credit;
  logic                 lacks_window;
  logic                 meta_read;
  logic [PlaceBits-1:0] meta_place;
  tx_meta_t             meta;
  logic                 data_read;
  logic [PlaceBits-1:0] data_place;
  logic [IndexBits-1:0]  data_beat;
  logic [511:0]         data;
  logic                 sent;
  logic [15:0]          sent_bytes;

  sender #(.WINDOW(WINDOW)) send (
      .clk,
      .run(tx_run_reg),
      .settings(settings.tx),
      .timing(settings.timing),
      .window(tx_window),
      .put,
      .ring_full,
      .reader_idle(tx_idle),
      .present,
      .present_ack,
      .present_credit,
      .impossible,
      .commit(heard),
      .request(request || (all_reduce && missing_valid)),
      .request_seq(request ? frame_seq : missing_seq),
      .m_valid(send_valid),
      .m_seq(send_seq),
      .m_again(send_again),
      .m_ready(send_ready),
      .acked,
      .next,
      .end_seq,
      .credit,
      .progress,
      .timeout,
      .lacks_credit,
      .lacks_window
  );

  tx_ring #(.VECTOR_BYTES(VECTOR_BYTES), .WINDOW(WINDOW)) queued (
      .clk,
      .rst,
      .run(tx_run_reg),
      `AXIS_VECTOR_CONNECT(s_axis, s_axis_tx),
      .place(end_seq[PlaceBits-1:0]),
      .full(ring_full),
      .put,
      .meta_read,
      .meta_place,
      .meta,
      .data_read,
      .data_place,
      .data_beat,
      .data
  );

  frame_sender #(.VECTOR_BYTES(VECTOR_BYTES), .WINDOW(WINDOW), .PARAMETERS(Root)) frames (
      .clk,
      .rst,
      .address(settings.address),
      .wid(settings.wid),
      .tx_gen(settings.tx.gen),
      .rx_gen(settings.rx.gen),
      .rx_ack,
      .rx_credit,
      .carry,
      .pairs(settings.pairs),
      .beat_valid,
      .beat_optional,
      .beat_missing,
      .beat_seq,
      .beat_ready,
      .s_valid(send_valid),
      .s_seq(send_seq),
      .s_again(send_again),
      .s_ready(send_ready),
      .idle(tx_idle),
      .meta_read,
      .meta_place,
      .meta,
      .data_read,
      .data_place,
      .data_beat,
      .data,
      `AXIS_KEEP_CONNECT(m_axis, m_axis_net),
      .sent,
      .sent_bytes
  );

  // ---- status and events -------------------------------------------------------------------------------------
  assign status = '{
      tx_ready: tx_run_reg,
      rx_ready: rx_run,
      tx_acked: acked,
      tx_next: next,
      tx_end: end_seq,
      tx_credit: credit,
      rx_ack: rx_ack,
      rx_consumed: rx_consumed
  };

  wire first_sent = send_valid && send_ready && !send_again;

  logic [15:0] events;
  always_comb begin
    events = 16'd0;
    events[STAT_TX_VECTORS[3:0]]         = first_sent;
    events[STAT_TX_RETRANSMISSIONS[3:0]] = send_valid && send_ready && send_again;
    events[STAT_TX_HEARTBEATS[3:0]]      = beat_valid && beat_ready;
    events[STAT_TX_REQUESTS[3:0]]        = missing_valid && missing_ready;
    events[STAT_TX_TIMEOUTS[3:0]]        = timeout;
    events[STAT_TX_CREDIT_CLOCKS[3:0]]   = tx_run_reg && lacks_credit;
    events[STAT_TX_WINDOW_CLOCKS[3:0]]   = tx_run_reg && lacks_window;
    events[STAT_TX_LINK_CLOCKS[3:0]]     = m_axis_net_tvalid && !m_axis_net_tready;
    events[STAT_TX_RING_CLOCKS[3:0]]     = s_axis_tx_tvalid && !s_axis_tx_tready;
    events[STAT_RX_FRAMES[3:0]]          = frame_end;
    events[STAT_RX_VECTORS[3:0]]         = take;
    events[STAT_RX_HEARTBEATS[3:0]]      = heartbeat;
    events[STAT_RX_REQUESTS[3:0]]        = request;
    events[STAT_RX_SATURATED[3:0]]       = take && frame_meta.sat;
    events[STAT_RX_HOST_CLOCKS[3:0]]     = m_axis_rx_tvalid && !m_axis_rx_tready;
    events[STAT_RX_FULL_CLOCKS[3:0]]     = rx_run && rx_ack == rx_credit;
  end

  transport_stats stats (
      .clk,
      .rst,
      .events,
      .frame_end,
      .frame_reject,
      .sent,
      .sent_bytes,
      .received_bytes(beat_bytes),
      .tx_run(tx_run_reg),
      .first_sent,
      .first_seq(send_seq),
      .acked,
      .timeout,
      .stat_index,
      .stat_value
  );

  wire unused = &{1'b0, progress, settings.rx.slots};

  // ---- the laws of the ports ---------------------------------------------------------------------------------
  stream_check #(.WIDTH(513 + $bits(tx_meta_t))) check_tx (
      .clk,
      .rst,
      .data({s_axis_tx_tdata, s_axis_tx_tlast, s_axis_tx_tuser}),
      .valid(s_axis_tx_tvalid),
      .ready(s_axis_tx_tready)
  );

  stream_check #(.WIDTH(513 + $bits(rx_meta_t))) check_rx (
      .clk,
      .rst,
      .data({m_axis_rx_tdata, m_axis_rx_tlast, m_axis_rx_tuser}),
      .valid(m_axis_rx_tvalid),
      .ready(m_axis_rx_tready)
  );

  axis_check check_from_net (
      .clk,
      .rst,
      .tdata(s_axis_net_tdata),
      .tkeep(s_axis_net_tkeep),
      .tlast(s_axis_net_tlast),
      .tuser(s_axis_net_tuser),
      .tvalid(s_axis_net_tvalid),
      .tready(s_axis_net_tready)
  );

  axis_check check_to_net (
      .clk,
      .rst,
      .tdata(m_axis_net_tdata),
      .tkeep(m_axis_net_tkeep),
      .tlast(m_axis_net_tlast),
      .tuser(1'b0),
      .tvalid(m_axis_net_tvalid),
      .tready(m_axis_net_tready)
  );

endmodule : transport

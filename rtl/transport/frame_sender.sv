// Sends frames to the MAC: at each frame's end a heartbeat if one is due, else the frame that the sender offers.
// A header takes one clock and a payload one clock a beat, without a bubble between frames or inside one.
`include "ports.svh"

module frame_sender
  import catchment_wire_pkg::*;
  import serial_pkg::*;
  import transport_pkg::*;
#(
    parameter int unsigned VECTOR_BYTES = 256,
    // places of the ring, a power of two
    parameter int unsigned WINDOW = 1024,
    // PARAM, opaque bytes; else PA, lanes
    parameter bit PARAMETERS = 1'b0,
    localparam int unsigned Beats     = VECTOR_BYTES / 64,
    localparam int unsigned PlaceBits = $clog2(WINDOW),
    localparam int unsigned IndexBits  = Beats > 1 ? $clog2(Beats) : 1
) (
    input  logic                 clk,
    input  logic                 rst,

    input  address_settings_t    address,
    input  logic [7:0]           wid,
    input  logic [15:0]          tx_gen,
    input  logic [15:0]          rx_gen,
    // what a receiver says, and in all-reduce a PA too
    input  seq_t                 rx_ack,
    input  seq_t                 rx_credit,
    input  logic                 carry,
    // lanes are packed
    input  logic                 pairs,

    // a heartbeat is due; `beat_missing`: to ask for frame beat_seq
    input  logic                 beat_valid,
    input  logic                 beat_optional,
    input  logic                 beat_missing,
    input  seq_t                 beat_seq,
    output logic                 beat_ready,

    input  logic                 s_valid,
    input  seq_t                 s_seq,
    input  logic                 s_again,
    output logic                 s_ready,

    // no vector is under way in the ring
    output logic                 idle,
    output logic                 meta_read,
    output logic [PlaceBits-1:0] meta_place,
    input  tx_meta_t             meta,
    output logic                 data_read,
    output logic [PlaceBits-1:0] data_place,
    output logic [IndexBits-1:0]  data_beat,
    input  logic [511:0]         data,

    `AXIS_KEEP_OUT_PORTS(m_axis),

    // a frame leaves; it has so many bytes
    output logic                 sent,
    output logic [15:0]          sent_bytes
);

  // All stages move together, or wait for the MAC.
  wire move = m_axis_tready || !m_axis_tvalid;

  // ---- select: a header, or the next beat of the payload -------------------------------------------------
  logic                 reading_reg;
  logic [PlaceBits-1:0] place_reg;
  logic [IndexBits-1:0]  beat_reg;
  logic                 last_beat;  // of the vector at place_reg

  wire boundary   = move && !reading_reg;
  wire data_first = carry && beat_optional && s_valid;
  wire take_beat  = boundary && beat_valid && !data_first;
  wire take_data  = boundary && s_valid && (!beat_valid || data_first);

  assign beat_ready = boundary && !data_first;
  assign s_ready    = boundary && (!beat_valid || data_first);
  assign idle       = !reading_reg;
  assign meta_read  = take_data;
  assign meta_place = s_seq[PlaceBits-1:0];
  assign data_read  = move;
  assign data_place = place_reg;
  assign data_beat  = beat_reg;

  if (PARAMETERS) begin : gen_bytes
    wire [15:0] before_last = meta.bytes - 16'd1;
    assign last_beat = before_last[6+:IndexBits] == beat_reg;
    wire unused = &{1'b0, before_last};
  end else begin : gen_lanes
    assign last_beat = beat_reg == IndexBits'(Beats - 1);
  end

  always_ff @(posedge clk) begin
    if (boundary) begin
      place_reg <= s_seq[PlaceBits-1:0];
      beat_reg  <= '0;
    end else if (move) begin
      beat_reg <= beat_reg + 1'b1;
    end
    if (rst) reading_reg <= 1'b0;
    else if (move) reading_reg <= take_data || (reading_reg && !last_beat);
  end

  // ---- first stage: what the ring says beside the vector is here --------------------------------------------
  logic        head_1_reg;
  logic        heartbeat_1_reg;
  logic        missing_1_reg;
  logic        again_1_reg;
  seq_t        seq_1_reg;
  logic [15:0] gen_1_reg;
  logic        tail_1_reg;     // a beat of the payload, its last
  logic        payload_1_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      head_1_reg    <= 1'b0;
      payload_1_reg <= 1'b0;
    end else if (move) begin
      head_1_reg    <= take_beat || take_data;
      payload_1_reg <= reading_reg;
    end
    if (move) begin
      heartbeat_1_reg <= take_beat;
      missing_1_reg   <= beat_missing;
      again_1_reg     <= s_again;
      seq_1_reg       <= take_beat ? beat_seq : s_seq;
      gen_1_reg       <= take_beat ? rx_gen : tx_gen;
      tail_1_reg      <= last_beat;
    end
  end

  header_t     header;
  logic [15:0] payload_bytes;

  always_comb begin
    header         = '0;
    header.version = 4'(Version);
    header.gen     = gen_1_reg;
    header.wid     = wid;
    header.seq     = seq_1_reg;
    if (heartbeat_1_reg || carry) begin
      header.flags  = FLAG_ACKV;
      header.ack    = rx_ack;
      header.credit = rx_credit;
    end
    if (heartbeat_1_reg) begin
      payload_bytes = 16'd0;
      header.ptype  = PACKET_TYPE_HB;
      header.flags |= missing_1_reg ? FLAG_RETX : 8'd0;
    end else begin
      payload_bytes   = PARAMETERS ? meta.bytes : 16'(VECTOR_BYTES);
      header.ptype    = PARAMETERS ? PACKET_TYPE_PARAM : PACKET_TYPE_PA;
      header.lanes    = PARAMETERS ? meta.bytes : 16'(VECTOR_BYTES / (LaneBits / 8));
      header.dtype    = PARAMETERS ? DATA_TYPE_BYTES : meta.dtype;
      header.exp      = PARAMETERS ? 8'sd0 : meta.exp;
      header.next_exp = meta.expv ? meta.next_exp : 8'sd0;
      header.flags |= (again_1_reg ? FLAG_RETX : 8'd0) | (meta.last ? FLAG_LAST : 8'd0)
                    | (meta.expv ? FLAG_EXPV : 8'd0) | (meta.sat ? FLAG_SAT : 8'd0)
                    | (pairs && !PARAMETERS ? FLAG_PACKED : 8'd0);
    end
  end

  // ---- second stage: the header is built, the beat is at the ring's output ---------------------------------
  logic         head_2_reg;
  logic         heartbeat_2_reg;
  logic         payload_2_reg;
  logic         tail_2_reg;
  logic [5:0]   rest_2_reg;  // bytes of the last beat, 0: all
  logic [511:0] head_beat;
  logic [511:0] payload_beat;

  header_builder builder (
      .clk,
      .address,
      .header,
      .payload_bytes,
      .enable(move),
      .beat(head_beat),
      .frame_bytes(sent_bytes)
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      head_2_reg    <= 1'b0;
      payload_2_reg <= 1'b0;
    end else if (move) begin
      head_2_reg    <= head_1_reg;
      payload_2_reg <= payload_1_reg;
    end
    if (move) begin
      heartbeat_2_reg <= heartbeat_1_reg;
      tail_2_reg      <= tail_1_reg;
      if (head_1_reg) rest_2_reg <= payload_bytes[5:0];
    end
  end

  assign sent = move && head_2_reg;

  // Lanes are little-endian here and big-endian in the frame.
  for (genvar i = 0; i < 64; i++) begin : gen_byte
    assign payload_beat[8*i+:8] = data[8*(PARAMETERS ? i : i ^ 3)+:8];
  end

  // ---- output ------------------------------------------------------------------------------------------------
  logic [511:0] data_reg;
  logic [63:0]  keep_reg;
  logic         last_reg;
  logic         valid_reg;

  assign m_axis_tdata  = data_reg;
  assign m_axis_tkeep  = keep_reg;
  assign m_axis_tlast  = last_reg;
  assign m_axis_tvalid = valid_reg;

  always_ff @(posedge clk) begin
    if (move) begin
      data_reg <= head_2_reg ? head_beat : payload_beat;
      last_reg <= head_2_reg ? heartbeat_2_reg : tail_2_reg;
      for (int unsigned i = 0; i < 64; i++) begin
        keep_reg[i] <= head_2_reg || !tail_2_reg || rest_2_reg == 6'd0 || 6'(i) < rest_2_reg;
      end
    end
    if (rst) valid_reg <= 1'b0;
    else if (move) valid_reg <= head_2_reg || payload_2_reg;
  end

  wire unused_meta = &{1'b0, meta.foreign};

endmodule : frame_sender

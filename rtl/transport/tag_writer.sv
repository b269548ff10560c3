// Between a transport and the MAC: a frame of a stream that has a key leaves with a tag behind its payload, eight bytes longer; others
// leave as they are.  A frame waits in `queue` until its tag is known.
`include "ports.svh"

module tag_writer
  import catchment_wire_pkg::BeatBits;
  import keep_pkg::*;
  import tag_pkg::*;
#(
    // frames that are hashed at a time, 1..16
    parameter int unsigned UNITS = 4
) (
    input  logic        clk,
    input  logic        rst,

    input  logic [15:0] tx_gen,
    input  logic [15:0] rx_gen,
    input  tag_keys_t   keys,

    // frames of the transport, whole beats but for the last
    `AXIS_KEEP_IN_PORTS(s_axis),

    // to the MAC, without gaps inside a frame
    `AXIS_KEEP_OUT_PORTS(m_axis)
);

  function automatic logic [BeatBits-1:0] bits_of(keep_t keep);
    logic [BeatBits-1:0] bits;
    for (int unsigned i = 0; i < BeatBytes; i++) bits[8*i+:8] = {8{keep[i]}};
    return bits;
  endfunction

  // ---- in: the header says which key ---------------------------------------------------------------------------
  logic               inside_reg;
  logic               keyed;
  logic               of_rx;
  logic [16:0]        payload;
  logic [511:0]       changed;
  logic               room;

  assign s_axis_tready = room;

  wire take  = s_axis_tvalid && s_axis_tready;
  wire first = !inside_reg;

  tag_header header (
      .tx_gen,
      .rx_gen,
      .tx_on(keys.tx.on),
      .rx_on(keys.rx.on),
      .beat(s_axis_tdata),
      .keyed,
      .of_rx,
      .versioned(),
      .payload,
      .changed
  );

  logic          valid_1_reg;
  logic          first_1_reg;
  logic          last_1_reg;
  logic [511:0]  data_1_reg;
  keep_t         keep_1_reg;
  tagged_frame_t frame_1_reg;

  always_ff @(posedge clk) begin
    if (take) begin
      first_1_reg <= first;
      last_1_reg  <= s_axis_tlast;
      keep_1_reg  <= s_axis_tkeep;
      data_1_reg  <= (first && keyed ? changed : s_axis_tdata) & bits_of(s_axis_tkeep);
      if (first) begin
        frame_1_reg <= '{
            hashed: keyed,
            of_rx: of_rx,
            // the tag begins in a beat of its own, or goes on in it
            extra: keyed && (payload[5:0] == 6'd0 || (&payload[5:3] && |payload[2:0])),
            payload: payload[15:0],
            default: '0
        };
      end
    end
    if (rst) begin
      inside_reg  <= 1'b0;
      valid_1_reg <= 1'b0;
    end else begin
      if (take) inside_reg <= !s_axis_tlast;
      valid_1_reg <= take;
    end
  end

  // ---- the wait --------------------------------------------------------------------------------------------------
  logic [511:0]       data_2;
  keep_t              keep_2;
  logic               first_2;
  logic               last_2;
  tagged_frame_t      frame_2;
  logic [TagBits-1:0] hash_2;
  logic               valid_2;

  wire move = m_axis_tready || !m_axis_tvalid;

  tag_queue #(.UNITS(UNITS)) queue (
      .clk,
      .rst,
      .tx_key(keys.tx.key),
      .rx_key(keys.rx.key),
      .s_write(valid_1_reg),
      .s_first(first_1_reg),
      .s_data(data_1_reg),
      .s_keep(keep_1_reg),
      .s_end(valid_1_reg && last_1_reg),
      .s_void(1'b0),
      .s_frame(frame_1_reg),
      .s_ready(room),
      .m_data(data_2),
      .m_keep(keep_2),
      .m_first(first_2),
      .m_last(last_2),
      .m_frame(frame_2),
      .m_hash(hash_2),
      .m_valid(valid_2),
      .m_ready(move)
  );

  // ---- out: the tag goes behind the payload -------------------------------------------------------------------
  logic signed [17:0]  rest_reg;  // of the next beat's first byte to the tag
  logic                valid_3_reg;
  logic                last_3_reg;
  logic                plain_3_reg;  // no byte of it is the tag's
  logic [511:0]        data_3_reg;
  keep_t               keep_3_reg;
  logic signed [7:0]   at_3_reg;
  logic [7:0][7:0]     turned_3_reg;  // the tag's bytes, each in its place of eight
  logic [7:0][7:0]     turned;
  logic [7:0][7:0]     hash_bytes;    // the first one highest
  keep_t               payload_3;
  keep_t               all_3;

  tag_bytes bytes (
      .at(at_3_reg),
      .payload(payload_3),
      .all(all_3)
  );

  assign hash_bytes = hash_2;

  always_comb begin
    for (int unsigned i = 0; i < 8; i++) turned[i] = hash_bytes[~(3'(i) - frame_2.payload[2:0])];
  end

  always_ff @(posedge clk) begin
    if (move) begin
      if (valid_2) rest_reg <= first_2 ? signed'({2'b00, frame_2.payload}) : rest_reg - 18'sd64;
      last_3_reg   <= last_2;
      plain_3_reg  <= first_2 || !frame_2.hashed;
      data_3_reg   <= data_2;
      keep_3_reg   <= keep_2;
      at_3_reg     <= near(rest_reg);
      turned_3_reg <= turned;
      m_axis_tlast <= last_3_reg;
      m_axis_tkeep <= plain_3_reg ? keep_3_reg : all_3;
      for (int unsigned i = 0; i < BeatBytes; i++) begin
        m_axis_tdata[8*i+:8] <= plain_3_reg || payload_3[i] ? data_3_reg[8*i+:8] : turned_3_reg[3'(i)];
      end
    end
    if (rst) begin
      valid_3_reg   <= 1'b0;
      m_axis_tvalid <= 1'b0;
    end else if (move) begin
      valid_3_reg   <= valid_2;
      m_axis_tvalid <= valid_3_reg;
    end
  end

  wire unused = &{1'b0, payload[16], frame_2.of_rx, frame_2.extra, frame_2.tag, frame_2.forged, frame_2.damaged};

endmodule : tag_writer

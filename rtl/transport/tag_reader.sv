// Between the MAC and a transport: a frame of a stream that has a key goes on without its tag, once the tag is found right; any other
// frame of such a stream is `forged`.  Frames of other streams pass.  A frame waits in `queue` until its tag is known, and no beat of
// it goes on before; one that finds no room there is lost, for a MAC cannot wait.
`include "ports.svh"

module tag_reader
  import catchment_wire_pkg::BeatBits;
  import keep_pkg::*;
  import tag_pkg::*;
#(
    // frames that are hashed at a time, 1..16
    parameter int unsigned UNITS = 4,
    // bytes of the longest payload
    parameter int unsigned VECTOR_BYTES = 256
) (
    input  logic        clk,
    input  logic        rst,

    input  logic [15:0] tx_gen,
    input  logic [15:0] rx_gen,
    input  tag_keys_t   keys,

    // frames of the MAC; tuser with tlast: damaged.  tready is always high
    `AXIS_FRAME_IN_PORTS(s_axis),

    // frames for the transport, which takes a beat every clock; `m_forged` is the same on all beats of a frame
    `AXIS_FRAME_OUT_PORTS(m_axis),
    output logic        m_forged,

    // high for a clock: a frame found no room
    output logic        lost
);

  function automatic logic [BeatBits-1:0] bits_of(keep_t keep);
    logic [BeatBits-1:0] bits;
    for (int unsigned i = 0; i < BeatBytes; i++) bits[8*i+:8] = {8{keep[i]}};
    return bits;
  endfunction

  assign s_axis_tready = 1'b1;

  // ---- in: the header says which key, and where the tag must be -----------------------------------------------
  logic               inside_reg;
  logic               keyed;
  logic               of_rx;
  logic               versioned;
  logic [16:0]        payload;
  logic [511:0]       changed;

  wire first = !inside_reg;
  wire whole = &s_axis_tkeep;

  tag_header #(.OPENS(1'b1)) header (
      .tx_gen,
      .rx_gen,
      .tx_on(keys.tx.on),
      .rx_on(keys.rx.on),
      .beat(s_axis_tdata),
      .keyed,
      .of_rx,
      .versioned,
      .payload,
      .changed
  );

  wire hashable = keyed && versioned && whole && !s_axis_tlast && payload <= 17'(VECTOR_BYTES);

  logic               keyed_reg;
  logic               hashed_reg;    // so far it may be right
  logic signed [17:0] rest;          // of the next beat's first byte to the tag
  logic signed [17:0] rest_reg;      // of this one's
  logic signed [7:0]  at_reg;
  keep_t              payload_kept;
  keep_t              all_kept;
  logic [7:0][7:0]    folded;        // the tag's bytes in this beat, each in its place of eight

  assign rest = first ? signed'({2'b00, payload[15:0]}) : rest_reg - 18'sd64;

  tag_bytes bytes (
      .at(at_reg),
      .payload(payload_kept),
      .all(all_kept)
  );

  always_comb begin
    folded = '0;
    for (int unsigned i = 0; i < BeatBytes; i++) begin
      if (all_kept[i] && !payload_kept[i]) folded[3'(i)] |= s_axis_tdata[8*i+:8];
    end
  end

  // The frame ends where its tag does, and has no hole before.
  wire ends_here = at_reg[7] || !(at_reg[6] || (&at_reg[5:3] && |at_reg[2:0]));
  wire right     = first ? hashable : hashed_reg && s_axis_tkeep == all_kept
                                      && s_axis_tlast == ends_here;
  wire opens     = first ? hashable : hashed_reg;

  logic               valid_1_reg;
  logic               write_1_reg;
  logic               first_1_reg;
  logic               last_1_reg;
  logic [511:0]       data_1_reg;
  keep_t              keep_1_reg;
  logic               right_1_reg;
  logic               damaged_1_reg;
  logic [7:0][7:0]    folded_1_reg;
  logic               of_rx_reg;
  logic [15:0]        payload_reg;

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      if (first) begin
        keyed_reg   <= keyed && whole;
        of_rx_reg   <= of_rx;
        payload_reg <= payload[15:0];
      end
      hashed_reg    <= right;
      rest_reg      <= rest;
      at_reg        <= near(rest);
      first_1_reg   <= first;
      last_1_reg    <= s_axis_tlast;
      // Of a tag alone there is nothing to keep.  Where a tag began in the beat before, that one was cut there and stays the
      // last, whatever follows it in a frame that is forged.
      write_1_reg   <= first || payload_kept[0] || (!right && !(keyed_reg && at_reg[7]));
      data_1_reg    <= !opens ? s_axis_tdata : first ? changed : s_axis_tdata & bits_of(payload_kept);
      keep_1_reg    <= right && !first ? payload_kept : s_axis_tkeep;
      right_1_reg   <= right;
      damaged_1_reg <= s_axis_tuser;
      folded_1_reg  <= first ? '0 : folded | folded_1_reg;
    end
    if (rst) begin
      inside_reg  <= 1'b0;
      valid_1_reg <= 1'b0;
    end else begin
      if (s_axis_tvalid) inside_reg <= !s_axis_tlast;
      valid_1_reg <= s_axis_tvalid;
    end
  end

  // ---- the wait --------------------------------------------------------------------------------------------------
  logic               room;
  logic               lost_reg;  // of the frame under way something found no room
  tagged_frame_t      frame_1;
  logic [511:0]       data_2;
  keep_t              keep_2;
  logic               last_2;
  tagged_frame_t      frame_2;
  logic [TagBits-1:0] hash_2;
  logic               valid_2;

  wire loses = valid_1_reg && (!room || (lost_reg && !first_1_reg));
  wire ends  = valid_1_reg && last_1_reg;

  assign lost = ends && loses;

  always_comb begin
    frame_1         = '0;
    frame_1.hashed  = right_1_reg;
    frame_1.of_rx   = of_rx_reg;
    frame_1.payload = payload_reg;
    frame_1.forged  = keyed_reg && !right_1_reg;
    frame_1.damaged = damaged_1_reg;
    for (int unsigned i = 0; i < 8; i++) frame_1.tag[8*(7-i)+:8] = folded_1_reg[3'(i)+payload_reg[2:0]];
  end

  always_ff @(posedge clk) begin
    if (rst) lost_reg <= 1'b0;
    else if (valid_1_reg) lost_reg <= loses && !last_1_reg;
  end

  tag_queue #(.UNITS(UNITS)) queue (
      .clk,
      .rst,
      .tx_key(keys.tx.key),
      .rx_key(keys.rx.key),
      .s_write(valid_1_reg && write_1_reg && !loses),
      .s_first(first_1_reg),
      .s_data(data_1_reg),
      .s_keep(keep_1_reg),
      .s_end(ends),
      .s_void(loses),
      .s_frame(frame_1),
      .s_ready(room),
      .m_data(data_2),
      .m_keep(keep_2),
      .m_first(),
      .m_last(last_2),
      .m_frame(frame_2),
      .m_hash(hash_2),
      .m_valid(valid_2),
      .m_ready(1'b1)
  );

  // ---- out -------------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    m_axis_tdata <= data_2;
    m_axis_tkeep <= keep_2;
    m_axis_tlast <= last_2;
    m_axis_tuser <= last_2 && frame_2.damaged;
    m_forged     <= frame_2.forged || (frame_2.hashed && hash_2 != frame_2.tag);
    m_axis_tvalid <= valid_2 && !rst;
  end

  wire unused = &{1'b0, m_axis_tready, frame_2.of_rx, frame_2.extra, frame_2.payload};

endmodule : tag_reader

// Frames wait here, in their order, until their tags are known: beside each beat lies a row of eight words, our header and the payload
// as they are hashed, and units fetch the rows.  A frame comes out with its hash, a beat every clock; one that has none goes by.
//
// Rows: 24 bytes of the header, two of them zero, are before the payload, so a row is the last 24 bytes of a beat (first: of the header)
// and the first 40 of the next one.  Each unit may fetch a row every sixteenth clock, which is what eight words take.
module tag_queue
  import catchment_wire_pkg::*;
  import keep_pkg::*;
  import tag_pkg::*;
#(
    // 1..16
    parameter int unsigned UNITS = 4,
    // beats that wait at most, a power of two
    parameter int unsigned BEATS = 1024
) (
    input  logic               clk,
    input  logic               rst,

    input  logic [127:0]       tx_key,
    input  logic [127:0]       rx_key,

    // a beat of a frame; what it does not keep is zero in a frame that is hashed
    input  logic               s_write,
    input  logic               s_first,
    input  logic [511:0]       s_data,
    input  keep_t              s_keep,
    // the frame ends, with this beat or with the one before; `s_void`: it is forgotten
    input  logic               s_end,
    input  logic               s_void,
    input  tagged_frame_t      s_frame,
    // there is room, for this beat and two more
    output logic               s_ready,

    output logic [511:0]       m_data,
    output keep_t              m_keep,
    output logic               m_first,
    output logic               m_last,
    output tagged_frame_t      m_frame,
    output logic [TagBits-1:0] m_hash,
    output logic               m_valid,
    input  logic               m_ready
);

  localparam int unsigned AddressBits = $clog2(BEATS);
  localparam int unsigned Frames      = 256;
  localparam int unsigned Slack       = 4;
  localparam int unsigned UnitBits    = UNITS > 1 ? $clog2(UNITS) : 1;

  typedef logic [AddressBits-1:0] address_t;

  typedef struct packed {
    address_t   row;
    logic [7:0] rows;
    logic [3:0] rest;
    logic [7:0] bytes;
    logic       of_rx;
  } message_t;

  if (UNITS < 1 || UNITS > MostTagUnits) begin : gen_bad_units
    $fatal(1, "tag_queue: UNITS must be 1..16");
  end

  function automatic logic [UnitBits-1:0] next_unit(logic [UnitBits-1:0] unit);
    return unit == UnitBits'(UNITS - 1) ? '0 : unit + 1'b1;
  endfunction

  // ---- in: beats and rows ------------------------------------------------------------------------------------
  // One bit more than an address: how full it is, is their difference.
  logic [AddressBits:0]    begin_reg;  // of the frame under way
  logic [AddressBits:0]    write_reg;
  logic [AddressBits:0]    read_reg;
  logic                    room_reg;
  logic [$clog2(Frames):0] frames_level;

  wire [AddressBits:0] level   = write_reg - read_reg;
  wire [AddressBits:0] written = write_reg + (AddressBits + 1)'(s_write);

  assign s_ready = room_reg;

  logic [191:0] head;      // of our header, as it is hashed: a leaf writes its own worker index into an FA
  logic [191:0] tail_reg;  // of the beat before
  always_comb begin
    head      = {16'd0, s_data[511:336]};
    head[7:4] = 4'(TaggedVersion);
    if (head[3:0] == PACKET_TYPE_FA) head[39:32] = 8'd0;
  end

  logic          flush_reg;  // the frame's last row is written, and the frame may leave
  tagged_frame_t frame_reg;
  address_t      first_reg;

  wire address_t newest = address_t'(write_reg - 1'b1);
  wire row_write = flush_reg || (s_write && !s_first);

  always_ff @(posedge clk) begin
    if (s_write) tail_reg <= s_first ? head : s_data[511:320];
    if (s_end) begin
      frame_reg <= s_frame;
      first_reg <= begin_reg[AddressBits-1:0];
    end
    if (rst) begin
      begin_reg <= '0;
      write_reg <= '0;
      room_reg  <= 1'b0;
      flush_reg <= 1'b0;
    end else begin
      room_reg  <= level < (AddressBits + 1)'(BEATS - Slack) && frames_level < ($clog2(Frames) + 1)'(Frames - Slack);
      flush_reg <= s_end && !s_void;
      write_reg <= s_end && s_void ? begin_reg : written;
      if (s_end && !s_void) begin_reg <= written;
    end
  end

  logic [511:0] row;
  address_t     row_address_reg;

  vector_ram #(.WIDTH(512), .DEPTH(BEATS)) rows (
      .clk,
      .write(row_write),
      .write_address(newest),
      .write_data({s_data[319:0], tail_reg}),
      .read(1'b1),
      .read_address(row_address_reg),
      .read_data(row)
  );

  // ---- messages go to the units in turn ----------------------------------------------------------------------
  message_t            message_in;
  message_t            message;
  logic                message_valid;
  logic [UnitBits-1:0] give_reg;
  logic [UNITS-1:0]    idle;

  // Two words of a header and its third, and those of the payload.
  wire [15:0] words = 16'd3 + ((frame_reg.payload + 16'd7) >> 3);
  wire        give  = message_valid && idle[give_reg];

  assign message_in = '{
      row: first_reg,
      rows: 8'((words + 16'd7) >> 3),
      rest: {words[2:0] == 3'd0, words[2:0]},
      bytes: 8'd24 + frame_reg.payload[7:0],
      of_rx: frame_reg.of_rx
  };

  // It holds no more than the frames' queue, which says whether there is room.
  sync_fifo #(.WIDTH($bits(message_t)), .DEPTH(Frames)) messages (
      .clk,
      .rst,
      .s_data(message_in),
      .s_valid(flush_reg && frame_reg.hashed),
      .s_ready(),
      .m_data(message),
      .m_valid(message_valid),
      .m_ready(give),
      .level()
  );

  logic [3:0]                    slot_reg;
  address_t                      asked[UNITS];
  address_t                      granted;
  logic [UNITS-1:0]              done;
  logic [UNITS-1:0][TagBits-1:0] hashes;
  logic [UnitBits-1:0]           take_reg;
  logic                          take;

  always_comb begin
    granted = '0;
    for (int unsigned i = 0; i < UNITS; i++) if (slot_reg == 4'(i)) granted = asked[i];
  end

  always_ff @(posedge clk) begin
    row_address_reg <= granted;
    if (rst) begin
      slot_reg <= '0;
      give_reg <= '0;
      take_reg <= '0;
    end else begin
      slot_reg <= slot_reg + 4'd1;
      if (give) give_reg <= next_unit(give_reg);
      if (take) take_reg <= next_unit(take_reg);
    end
  end

  for (genvar i = 0; i < UNITS; i++) begin : gen_unit
    tag_unit #(.ADDRESS_BITS(AddressBits)) hasher (
        .clk,
        .rst,
        .tx_key,
        .rx_key,
        .start(give && give_reg == UnitBits'(i)),
        .start_row(message.row),
        .start_rows(message.rows),
        .start_rest(message.rest),
        .start_bytes(message.bytes),
        .start_of_rx(message.of_rx),
        .idle(idle[i]),
        .row(asked[i]),
        .grant(slot_reg == 4'(i)),
        .data(row),
        .done(done[i]),
        .hash(hashes[i]),
        .taken(take && take_reg == UnitBits'(i))
    );
  end

  // ---- out -----------------------------------------------------------------------------------------------------
  typedef struct packed {
    address_t      final_beat;
    tagged_frame_t frame;
  } waiting_t;

  waiting_t waiting_in;
  waiting_t waiting;
  logic     waiting_valid;
  logic     leaves;
  logic     fresh_reg;  // the next beat is a frame's first
  logic     extra_reg;  // the next one is the one that did not go in

  assign waiting_in = '{final_beat: newest, frame: frame_reg};

  sync_fifo #(.WIDTH($bits(waiting_t)), .DEPTH(Frames)) frames (
      .clk,
      .rst,
      .s_data(waiting_in),
      .s_valid(flush_reg),
      .s_ready(),
      .m_data(waiting),
      .m_valid(waiting_valid),
      .m_ready(leaves),
      .level(frames_level)
  );

  wire move   = m_ready || !m_valid;
  wire reads  = waiting_valid && (!waiting.frame.hashed || done[take_reg]);
  wire at_end = read_reg[AddressBits-1:0] == waiting.final_beat;
  wire final0 = waiting.frame.extra ? extra_reg : at_end;
  assign leaves = move && reads && final0;

  assign take = leaves && waiting.frame.hashed;

  logic               valid_1_reg;
  logic               first_1_reg;
  logic               last_1_reg;
  logic               valid_2_reg;
  tagged_frame_t      frame_1_reg;
  logic [TagBits-1:0] hash_1_reg;

  vector_ram #(.WIDTH(512 + BeatBytes), .DEPTH(BEATS)) beats (
      .clk,
      .write(s_write),
      .write_address(write_reg[AddressBits-1:0]),
      .write_data({s_keep, s_data}),
      .read(move),
      .read_address(read_reg[AddressBits-1:0]),
      .read_data({m_keep, m_data})
  );

  always_ff @(posedge clk) begin
    if (move) begin
      first_1_reg <= fresh_reg;
      last_1_reg  <= final0;
      frame_1_reg <= waiting.frame;
      hash_1_reg  <= hashes[take_reg];
      m_first     <= first_1_reg;
      m_last      <= last_1_reg;
      m_frame     <= frame_1_reg;
      m_hash      <= hash_1_reg;
    end
    if (rst) begin
      read_reg    <= '0;
      fresh_reg   <= 1'b1;
      extra_reg   <= 1'b0;
      valid_1_reg <= 1'b0;
      valid_2_reg <= 1'b0;
    end else if (move) begin
      valid_1_reg <= reads;
      valid_2_reg <= valid_1_reg;
      if (reads) begin
        fresh_reg <= final0;
        extra_reg <= at_end && waiting.frame.extra && !extra_reg;
        if (!extra_reg) read_reg <= read_reg + 1'b1;
      end
    end
  end

  assign m_valid = valid_2_reg;

endmodule : tag_queue

// One core of a device in a ring of 2 to 16: sums chunks of memory over all devices, each of which has such a core.
//
// A chunk is cut into a segment for each device.  In 2(p-1) passes every device sends a segment on: first its own, then what
// comes in with its own added, and from the first complete sum on what comes in as it is.  An entry that comes in is combined and
// sent on at once.  Complete sums are written back; those of the last pass, which nobody needs any more, by a part of their own,
// while the next chunk's first pass is sent.
//
// While all devices send their first segments nobody takes anything, so a receive buffer must have room for a segment:
// start_segment is at most ENTRIES.
module sync_core #(
    // of each buffer; a power of two, twice the links' latency in clocks at least
    parameter int unsigned ENTRIES = 256,
    parameter int unsigned ENTRY_BITS = 16,
    parameter int unsigned ADDRESS_BITS = 32,
    // lanes are 0: int32, 1: binary32, whose sums depend on the order of the ring
    parameter bit FP32 = 1'b0
) (
    input  logic                    clk,
    input  logic                    rst,

    // place in the ring, counted in the direction in which the links send; neither changes while chunks are under way
    input  logic [3:0]              position,
    input  logic [3:0]              last,

    // a chunk: address of its first entry, entries, entries of a segment (entries / devices, rounded up), and what is done
    input  logic                    start_valid,
    output logic                    start_ready,
    input  logic [ADDRESS_BITS-1:0] start_address,
    input  logic [ENTRY_BITS-1:0]   start_entries,
    input  logic [ENTRY_BITS-1:0]   start_segment,
    input  logic                    start_maximum,
    // high for a clock for each chunk, when all of it is written
    output logic                    done,

    // memory: reads are answered in their order, and there is always room for what was asked for
    output logic                    m_read_valid,
    input  logic                    m_read_ready,
    output logic [ADDRESS_BITS-1:0] m_read_address,
    input  logic                    s_local_valid,
    input  logic [511:0]            s_local_data,
    output logic                    m_write_valid,
    input  logic                    m_write_ready,
    output logic [ADDRESS_BITS-1:0] m_write_address,
    output logic [511:0]            m_write_data,

    // from the device before in the ring, and to the next one
    input  logic                    s_link_valid,
    output logic                    s_link_ready,
    input  logic [511:0]            s_link_data,
    // high for a clock: there is room for one more
    output logic                    link_freed,
    output logic                    m_link_valid,
    input  logic                    m_link_ready,
    output logic [511:0]            m_link_data
);

  typedef logic [ENTRY_BITS-1:0] count_t;
  typedef logic [ENTRY_BITS+3:0] place_t;
  typedef logic [ADDRESS_BITS-1:0] address_t;
  typedef struct packed {
    address_t address;
    count_t   entries;
    count_t   segment;
    logic     maximum;
  } chunk_t;
  typedef struct packed {
    chunk_t   chunk;
    // of this device's segment
    place_t   first;
    count_t   count;
  } begun_t;
  typedef struct packed {
    address_t     address;
    logic [511:0] data;
  } write_t;

  localparam int unsigned Chunks = 4;
  localparam int unsigned Writes = 16;

  // ---- reading ahead: every segment once, in the order of the passes -------------------------------------------
  address_t   read_base_reg;
  count_t     read_entries_reg, read_segment_reg;
  logic       read_maximum_reg;
  logic       reading_reg;
  logic       passed_on_reg;  // the chunk is among those that are to be sent
  logic [3:0] read_pass_reg;
  count_t     read_at_reg;
  logic [$clog2(ENTRIES):0] asked_reg;
  place_t     read_first;
  count_t     read_count;
  logic       read_known;
  logic       queue_ready, queue_valid;
  begun_t     next_chunk;
  logic       load, local_taken;
  wire        start = start_valid && start_ready;
  wire        read = m_read_valid && m_read_ready;
  wire        read_segment_done = reading_reg && read_known && (read_count == '0 || (read && read_at_reg == read_count - 1'b1));
  // When its first segment is known; that lasts for a clock at least, and others follow.
  wire        pass_on = reading_reg && read_known && !passed_on_reg;
  wire begun_t passed_on = '{
      chunk: '{
          address: read_base_reg, entries: read_entries_reg, segment: read_segment_reg, maximum: read_maximum_reg
      },
      first: read_first, count: read_count
  };

  assign start_ready = !reading_reg && queue_ready;
  assign m_read_valid = reading_reg && read_known && read_count != '0 && !asked_reg[$clog2(ENTRIES)];
  assign m_read_address = read_base_reg + address_t'(read_first) + address_t'(read_at_reg);

  ring_schedule #(.ENTRY_BITS(ENTRY_BITS)) read_schedule (
      .clk, .load(start), .position,
      .begin_first(place_t'(sync_pkg::times(position, 32'(start_segment)))), .begin_count('0), .begin_known(1'b0),
      .advance(read_segment_done), .last, .segment(read_segment_reg), .entries(read_entries_reg),
      .known(read_known), .first(read_first), .count(read_count)
  );

  always_ff @(posedge clk) begin
    if (start) begin
      read_base_reg    <= start_address;
      read_entries_reg <= start_entries;
      read_segment_reg <= start_segment;
      read_maximum_reg <= start_maximum;
    end
    if (start || read_segment_done) read_at_reg <= '0;
    else if (read) read_at_reg <= read_at_reg + 1'b1;
    if (start) passed_on_reg <= 1'b0;
    else if (pass_on) passed_on_reg <= 1'b1;
    if (rst) begin
      reading_reg   <= 1'b0;
      read_pass_reg <= '0;
      asked_reg     <= '0;
    end else begin
      if (start) begin
        reading_reg   <= 1'b1;
        read_pass_reg <= '0;
      end else if (read_segment_done) begin
        reading_reg   <= read_pass_reg != last;
        read_pass_reg <= read_pass_reg + 1'b1;
      end
      asked_reg <= asked_reg + ($clog2(ENTRIES) + 1)'(read) - ($clog2(ENTRIES) + 1)'(local_taken);
    end
  end

  sync_fifo #(.WIDTH($bits(begun_t)), .DEPTH(Chunks), .RAM_STYLE("distributed")) chunks (
      .clk, .rst, .s_data(passed_on), .s_valid(pass_on), .s_ready(queue_ready),
      .m_data(next_chunk), .m_valid(queue_valid), .m_ready(load), .level()
  );

  // ---- buffers ----------------------------------------------------------------------------------------------------
  logic [511:0] local_data, recv_data, send_data;
  logic         local_valid, recv_valid, recv_taken, send_valid, send_ready;
  logic         local_room;

  sync_fifo #(.WIDTH(512), .DEPTH(ENTRIES), .RAM_STYLE("block")) local_buffer (
      .clk, .rst, .s_data(s_local_data), .s_valid(s_local_valid), .s_ready(local_room),
      .m_data(local_data), .m_valid(local_valid), .m_ready(local_taken), .level()
  );
  sync_fifo #(.WIDTH(512), .DEPTH(ENTRIES), .RAM_STYLE("block")) recv_buffer (
      .clk, .rst, .s_data(s_link_data), .s_valid(s_link_valid), .s_ready(s_link_ready),
      .m_data(recv_data), .m_valid(recv_valid), .m_ready(recv_taken), .level()
  );
  sync_fifo #(.WIDTH(512), .DEPTH(ENTRIES), .RAM_STYLE("block")) send_buffer (
      .clk, .rst, .s_data(send_data), .s_valid(send_valid), .s_ready(send_ready),
      .m_data(m_link_data), .m_valid(m_link_valid), .m_ready(m_link_ready), .level()
  );

  write_t write_in, write_out;
  logic   write_valid, write_ready;
  logic [$clog2(Writes):0] writes_left;

  sync_fifo #(.WIDTH($bits(write_t)), .DEPTH(Writes), .RAM_STYLE("distributed")) write_buffer (
      .clk, .rst, .s_data(write_in), .s_valid(write_valid), .s_ready(write_ready),
      .m_data(write_out), .m_valid(m_write_valid), .m_ready(m_write_ready), .level(writes_left)
  );
  assign m_write_address = write_out.address;
  assign m_write_data = write_out.data;

  // ---- the passes that send ---------------------------------------------------------------------------------------
  typedef enum logic [1:0] {IDLE, RUN, HAND_OVER} state_t;
  state_t     state_reg;
  chunk_t     chunk_reg;
  logic [4:0] pass_reg;
  place_t     first;
  count_t     at_reg, count;
  logic       known;
  logic       ending_reg;
  logic [511:0] combined;
  logic         pipe_enable;

  wire takes_link = pass_reg != '0;
  wire takes_local = pass_reg <= 5'(last);
  wire is_complete = pass_reg >= 5'(last);
  wire final_pass = pass_reg == {last, 1'b0} - 5'd1;
  // What comes in belongs to the last pass of the chunk before until that is done.
  wire mine = state_reg == RUN && known && !(takes_link && ending_reg);
  wire can = mine && count != '0 && (!takes_link || recv_valid) && (!takes_local || local_valid);
  wire fire = can && pipe_enable;
  wire hand_over = state_reg == HAND_OVER && known && !ending_reg;
  wire segment_done = mine && (count == '0 || (fire && at_reg == count - 1'b1));

  assign load = (state_reg == IDLE || hand_over) && queue_valid;
  assign local_taken = fire && takes_local;

  // ---- sums: a pipeline that stalls as a whole, with what goes around the ALU beside it ----------------------------
  localparam int unsigned Stages = sync_pkg::alu_stages(FP32);
  typedef struct packed {
    logic         is_sum;
    logic         is_complete;
    address_t     address;
    logic [511:0] data;
  } beside_t;
  beside_t entering, leaving;
  logic    leaving_valid;
  logic [Stages-1:0] completes_reg;  // a complete sum is in this stage

  wire leaves = leaving_valid && send_ready && (!leaving.is_complete || write_ready);

  assign entering = '{
      is_sum: takes_link && takes_local, is_complete: is_complete,
      address: chunk_reg.address + address_t'(first) + address_t'(at_reg), data: takes_link ? recv_data : local_data
  };
  stream_delay #(.WIDTH($bits(beside_t)), .STAGES(Stages)) beside (
      .clk, .rst, .s_data(entering), .s_valid(can), .enable(pipe_enable),
      .m_data(leaving), .m_valid(leaving_valid), .m_ready(leaves)
  );
  lane_alu #(.FP32(FP32)) alu (
      .clk, .enable(pipe_enable), .maximum(chunk_reg.maximum), .a(recv_data), .b(local_data), .y(combined)
  );
  assign send_valid = leaving_valid && (!leaving.is_complete || write_ready);
  assign send_data = leaving.is_sum ? combined : leaving.data;

  always_ff @(posedge clk) begin
    if (rst) completes_reg <= '0;
    else if (pipe_enable) completes_reg <= Stages'({completes_reg, can && is_complete});
  end

  ring_schedule #(.ENTRY_BITS(ENTRY_BITS)) schedule (
      .clk, .load, .position, .begin_first(next_chunk.first), .begin_count(next_chunk.count), .begin_known(1'b1),
      .advance(segment_done), .last, .segment(chunk_reg.segment), .entries(chunk_reg.entries),
      .known, .first, .count
  );

  always_ff @(posedge clk) begin
    if (load) chunk_reg <= next_chunk.chunk;
    if (load || segment_done) at_reg <= '0;
    else if (fire) at_reg <= at_reg + 1'b1;
    if (rst) begin
      state_reg <= IDLE;
      pass_reg  <= '0;
    end else begin
      if (load) pass_reg <= '0;
      else if (segment_done) pass_reg <= pass_reg + 1'b1;
      unique case (state_reg)
        IDLE:    if (load) state_reg <= RUN;
        RUN:     if (segment_done && final_pass) state_reg <= HAND_OVER;
        default: if (hand_over) state_reg <= load ? RUN : IDLE;
      endcase
    end
  end

  // ---- the last pass, which only writes ---------------------------------------------------------------------------
  address_t end_address_reg;
  count_t   end_left_reg;
  // Older sums are written first.  No new ones come while this pass lasts.
  wire      end_can = ending_reg && end_left_reg != '0 && recv_valid && completes_reg == '0;
  wire      end_fire = end_can && write_ready;

  assign done = ending_reg && end_left_reg == '0 && completes_reg == '0 && writes_left == '0;
  assign link_freed = recv_taken;
  assign recv_taken = (fire && takes_link) || end_fire;
  assign write_valid = (leaving_valid && leaving.is_complete && send_ready) || end_can;
  assign write_in.address = end_can ? end_address_reg : leaving.address;
  assign write_in.data = end_can ? recv_data : send_data;

  always_ff @(posedge clk) begin
    if (hand_over) begin
      end_address_reg <= chunk_reg.address + address_t'(first);
      end_left_reg    <= count;
    end else if (end_fire) begin
      end_address_reg <= end_address_reg + 1'b1;
      end_left_reg    <= end_left_reg - 1'b1;
    end
    if (rst) ending_reg <= 1'b0;
    else if (hand_over) ending_reg <= 1'b1;
    else if (done) ending_reg <= 1'b0;
  end

`ifdef VERILATOR
  a_segment_fits :
  assert property (@(posedge clk) disable iff (rst) start |-> start_segment != '0 && start_segment <= count_t'(ENTRIES))
  else $error("%m: a segment of %0d entries, the receive buffer has %0d", start_segment, ENTRIES);
  a_chunk_fits :
  assert property (@(posedge clk) disable iff (rst) start |-> last != '0 && start_entries != '0)
  else $error("%m: a chunk without entries, or a ring of one device");
  a_room_for_reads :
  assert property (@(posedge clk) disable iff (rst) s_local_valid |-> local_room)
  else $error("%m: an entry came that was not asked for");
`else
  wire unused = &{1'b0, local_room};
`endif

endmodule : sync_core

// A device of a ring that sums tensors in its memory with those of 2 to 16 devices: two cores, one for each way around, links
// to both neighbours, the scheduler that has all devices run the same tensors in one order, and registers.
//
// Core 0 sends to the next device, core 1 to the one before, so both directions of both links carry entries.  All devices of
// a ring are reset together, for longer than a link takes.
`include "ports.svh"

module sync_node
  import sync_pkg::*;
  import sync_regs_pkg::*;
#(
    // of each buffer, and of a segment: a power of two, at most 512
    parameter int unsigned ENTRIES = 256,
    // entries on their way on a link, a power of two, at most 512: twice its latency at least
    parameter int unsigned WINDOW = 256,
    // lanes are 0: int32, 1: binary32
    parameter bit FP32 = 1'b0
) (
    input  logic  clk,
    input  logic  rst,

    `AXIL_SLAVE_PORTS(s_axil, AddressBits),

    // memory: a port for each core
    `AXI_READ_PORTS(m_axi_0),
    `AXI_WRITE_PORTS(m_axi_0),
    `AXI_READ_PORTS(m_axi_1),
    `AXI_WRITE_PORTS(m_axi_1),

    // to the next device of the ring, and to the one before
    output flit_t next_tx,
    input  logic  next_tx_ready,
    input  flit_t next_rx,
    input  logic  next_rx_valid,
    output flit_t before_tx,
    input  logic  before_tx_ready,
    input  flit_t before_rx,
    input  logic  before_rx_valid,

    output logic  irq
);

  localparam int unsigned EntryCountBits = 16;
  localparam int unsigned AddressEntryBits = 32;
  localparam int unsigned Messages = 16;

  sync_control_t        control;
  logic                 post, post_urgent;
  tensor_t              post_tensor;
  work_t                post_work;
  tensor_t [1:0]        run_tensor, done_tensor;
  logic [1:0]           run_valid, run_ready, done;
  logic [1:0]           damaged, rewound, resent;
  logic                 broken;
  logic [3:0]           memory_error;
  logic [1:0]           send_valid, send_ready, came_valid, came_freed;
  logic [1:0][511:0]    send_data, came_data;

  sync_registers #(.ENTRIES_LOG2($clog2(ENTRIES)), .FP32(FP32)) registers (
      .clk, .rst, `AXIL_CONNECT(s_axil, s_axil), .control, .post, .post_tensor, .post_urgent, .post_work,
      .done, .done_tensor, .sent(send_valid & send_ready), .damaged, .rewound, .resent, .broken, .memory_error, .irq
  );

  // ---- scheduling -------------------------------------------------------------------------------------------------
  (* ram_style = "distributed" *)
  work_t works [Tensors];

  always_ff @(posedge clk) if (post) works[post_tensor] <= post_work;

  typedef struct packed {
    tensor_t tensor;
    logic    urgent;
  } post_t;
  post_t    posted;
  wire post_t posting = '{tensor: post_tensor, urgent: post_urgent};
  logic     posted_valid, posted_ready, post_room;
  message_t message_out, message_in;
  logic     message_out_valid, message_out_ready, message_in_valid, message_in_ready, message_came, message_room;
  logic [1:0] message_places;
  logic [511:0] message_data;

  // All tensors fit, and none is posted twice.
  sync_fifo #(.WIDTH($bits(post_t)), .DEPTH(Tensors), .RAM_STYLE("distributed")) posts (
      .clk, .rst, .s_data(posting), .s_valid(post), .s_ready(post_room),
      .m_data(posted), .m_valid(posted_valid), .m_ready(posted_ready), .level()
  );

  group_scheduler scheduler (
      .clk, .rst, .position(control.ring_position), .last(control.ring_last),
      .s_tensor(posted.tensor), .s_urgent(posted.urgent), .s_valid(posted_valid), .s_ready(posted_ready),
      .s_message(message_in), .s_message_valid(message_in_valid), .s_message_ready(message_in_ready),
      .m_message(message_out), .m_message_places(message_places), .m_message_valid(message_out_valid),
      .m_message_ready(message_out_ready),
      .m_tensor(run_tensor), .m_valid(run_valid), .m_ready(run_ready), .done, .broken
  );

  // ---- links ------------------------------------------------------------------------------------------------------
  logic next_message_came;

  ring_link #(.WINDOW(WINDOW), .DATA_ROOM(ENTRIES), .MESSAGE_ROOM(Messages)) next_link (
      .clk, .rst,
      .s_data_valid(send_valid[0]), .s_data_ready(send_ready[0]), .s_data(send_data[0]),
      .s_message_valid(message_out_valid), .s_message_ready(message_out_ready), .s_message(512'(message_out)),
      .s_message_places(message_places),
      .m_data_valid(came_valid[1]), .m_message_valid(next_message_came), .m_data(came_data[1]),
      .data_freed(came_freed[1]), .message_freed(1'b0),
      .tx_flit(next_tx), .tx_ready(next_tx_ready), .rx_flit(next_rx), .rx_valid(next_rx_valid),
      .damaged(damaged[0]), .rewound(rewound[0]), .resent(resent[0])
  );

  ring_link #(.WINDOW(WINDOW), .DATA_ROOM(ENTRIES), .MESSAGE_ROOM(Messages)) before_link (
      .clk, .rst,
      .s_data_valid(send_valid[1]), .s_data_ready(send_ready[1]), .s_data(send_data[1]),
      .s_message_valid(1'b0), .s_message_ready(), .s_message('0), .s_message_places(2'd1),
      .m_data_valid(came_valid[0]), .m_message_valid(message_came), .m_data(came_data[0]),
      .data_freed(came_freed[0]), .message_freed(message_in_valid && message_in_ready),
      .tx_flit(before_tx), .tx_ready(before_tx_ready), .rx_flit(before_rx), .rx_valid(before_rx_valid),
      .damaged(damaged[1]), .rewound(rewound[1]), .resent(resent[1])
  );

  assign message_data = came_data[0];

  sync_fifo #(.WIDTH($bits(message_t)), .DEPTH(Messages), .RAM_STYLE("distributed")) messages (
      .clk, .rst, .s_data(message_data[$bits(message_t)-1:0]), .s_valid(message_came), .s_ready(message_room),
      .m_data(message_in), .m_valid(message_in_valid), .m_ready(message_in_ready), .level()
  );

  // A shortest segment that is longer than a buffer is as long as the buffer.
  localparam int unsigned LeastBits = $clog2(ENTRIES) + 1;
  wire [LeastBits-1:0] least = 32'(control.least_segment) > ENTRIES ? LeastBits'(ENTRIES) : LeastBits'(control.least_segment);

  // ---- cores ------------------------------------------------------------------------------------------------------
  for (genvar g = 0; g < 2; g++) begin : gen_core
    logic                        start_valid, start_ready, start_maximum, written, chunk_done;
    logic [AddressEntryBits-1:0] start_address, read_address, write_address;
    logic [EntryCountBits-1:0]   start_entries, start_segment;
    logic                        read_valid, read_ready, local_valid, write_valid, write_ready, link_ready;
    logic [511:0]                local_data, write_data;
    wire [3:0] place = g == 0 ? control.ring_position : control.ring_last - control.ring_position;

    tensor_runner #(.ENTRIES(ENTRIES), .ENTRY_BITS(EntryCountBits), .ADDRESS_BITS(AddressEntryBits)) runner (
        .clk, .rst, .last(control.ring_last), .least,
        .s_tensor(run_tensor[g]), .s_work(works[run_tensor[g]]), .s_valid(run_valid[g]), .s_ready(run_ready[g]),
        .start_valid, .start_ready, .start_address, .start_entries, .start_segment, .start_maximum,
        .written, .done(done[g]), .done_tensor(done_tensor[g])
    );

    sync_core #(.ENTRIES(ENTRIES), .ENTRY_BITS(EntryCountBits), .ADDRESS_BITS(AddressEntryBits), .FP32(FP32)) core (
        .clk, .rst, .position(place), .last(control.ring_last),
        .start_valid, .start_ready, .start_address, .start_entries, .start_segment, .start_maximum, .done(chunk_done),
        .m_read_valid(read_valid), .m_read_ready(read_ready), .m_read_address(read_address),
        .s_local_valid(local_valid), .s_local_data(local_data),
        .m_write_valid(write_valid), .m_write_ready(write_ready), .m_write_address(write_address), .m_write_data(write_data),
        .s_link_valid(came_valid[g]), .s_link_ready(link_ready), .s_link_data(came_data[g]), .link_freed(came_freed[g]),
        .m_link_valid(send_valid[g]), .m_link_ready(send_ready[g]), .m_link_data(send_data[g])
    );

    if (g == 0) begin : gen_memory
      entry_reader #(.ADDRESS_BITS(AddressEntryBits)) reader (
          .clk, .rst, .s_valid(read_valid), .s_ready(read_ready), .s_address(read_address),
          .m_valid(local_valid), .m_data(local_data), `AXI_READ_CONNECT(m_axi, m_axi_0), .error(memory_error[0])
      );
      entry_writer #(.ADDRESS_BITS(AddressEntryBits)) writer (
          .clk, .rst, .s_valid(write_valid), .s_ready(write_ready), .s_address(write_address), .s_data(write_data),
          .mark(chunk_done), .marked(written), `AXI_WRITE_CONNECT(m_axi, m_axi_0), .error(memory_error[1])
      );
    end else begin : gen_memory
      entry_reader #(.ADDRESS_BITS(AddressEntryBits)) reader (
          .clk, .rst, .s_valid(read_valid), .s_ready(read_ready), .s_address(read_address),
          .m_valid(local_valid), .m_data(local_data), `AXI_READ_CONNECT(m_axi, m_axi_1), .error(memory_error[2])
      );
      entry_writer #(.ADDRESS_BITS(AddressEntryBits)) writer (
          .clk, .rst, .s_valid(write_valid), .s_ready(write_ready), .s_address(write_address), .s_data(write_data),
          .mark(chunk_done), .marked(written), `AXI_WRITE_CONNECT(m_axi, m_axi_1), .error(memory_error[3])
      );
    end

`ifdef VERILATOR
    a_room_for_entries :
    assert property (@(posedge clk) disable iff (rst) came_valid[g] |-> link_ready)
    else $error("%m: an entry came without a credit");
`else
    wire unused = &{1'b0, link_ready};
`endif
  end

`ifdef VERILATOR
  a_room :
  assert property (@(posedge clk) disable iff (rst) (!post || post_room) && (!message_came || message_room) && !next_message_came)
  else $error("%m: a message or a post came without a credit");
`else
  wire unused = &{1'b0, post_room, message_room, next_message_came};
`endif
  wire unused_bits = &{1'b0, message_data[511:$bits(message_t)], control};

endmodule : sync_node

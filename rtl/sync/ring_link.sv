// One end of a link between two devices, both directions: entries of data and messages go over it unchanged, once and in
// order, whatever flits are damaged or lost on the way.  Each direction carries the acknowledgements and credits of the other.
module ring_link
  import sync_pkg::*;
#(
    // entries that are on their way at most, a power of two: twice the link's latency at least
    parameter int unsigned WINDOW = 256,
    // entries of data, and messages, that this end's owner has room for, less than 2 ** LinkSeqBits
    parameter int unsigned DATA_ROOM = 256,
    parameter int unsigned MESSAGE_ROOM = 16
) (
    input  logic                 clk,
    input  logic                 rst,

    input  logic                 s_data_valid,
    output logic                 s_data_ready,
    input  logic [EntryBits-1:0] s_data,
    input  logic                 s_message_valid,
    output logic                 s_message_ready,
    input  logic [EntryBits-1:0] s_message,
    input  logic [1:0]           s_message_places,

    // the owner must take these; it says when it has room for one more
    output logic                 m_data_valid,
    output logic                 m_message_valid,
    output logic [EntryBits-1:0] m_data,
    input  logic                 data_freed,
    input  logic                 message_freed,

    // the wires: a flit out in each clock in which the other side takes one, a flit in where one is there
    output flit_t                tx_flit,
    input  logic                 tx_ready,
    input  flit_t                rx_flit,
    input  logic                 rx_valid,

    // one clock each, for counters: a flit came damaged, we went back, an entry was sent again
    output logic                 damaged,
    output logic                 rewound,
    output logic                 resent
);

  // A credit of that many would look like none.
  if (DATA_ROOM >= 2 ** LinkSeqBits || MESSAGE_ROOM >= 2 ** LinkSeqBits) begin : gen_bad_room
    $fatal(1, "ring_link: DATA_ROOM and MESSAGE_ROOM must be less than what credits count");
  end

  // ---- sending --------------------------------------------------------------------------------------------------
  flit_kind_t           kind;
  link_seq_t            seq, ack, data_credit_reg, message_credit_reg;
  logic                 epoch, nak, nak_epoch;
  logic [EntryBits-1:0] data;
  flit_header_t         header;
  logic [CoveredBits-1:0] covered_reg;
  logic [CrcBits-1:0]   crc;
  flit_header_t         heard;
  logic                 heard_valid;

  link_sender #(.WINDOW(WINDOW)) sender (
      .clk, .rst,
      .s_data_valid, .s_data_ready, .s_data, .s_message_valid, .s_message_ready, .s_message, .s_message_places,
      .heard_valid, .heard_ack(heard.ack), .heard_nak(heard.nak), .heard_nak_epoch(heard.nak_epoch),
      .heard_data_credit(heard.data_credit), .heard_message_credit(heard.message_credit),
      .enable(tx_ready), .m_kind(kind), .m_seq(seq), .m_epoch(epoch), .m_data(data), .rewound, .resent
  );

  assign header = '{
      kind: kind, seq: seq, epoch: epoch, ack: ack, nak: nak, nak_epoch: nak_epoch,
      data_credit: data_credit_reg, message_credit: message_credit_reg
  };

  link_crc #(.WIDTH(CoveredBits)) tx_crc (.clk, .enable(tx_ready), .data({header, data}), .crc);

  always_ff @(posedge clk) begin
    if (tx_ready) begin
      covered_reg <= {header, data};
      tx_flit     <= {covered_reg, crc};
    end
    if (rst) begin
      data_credit_reg    <= link_seq_t'(DATA_ROOM);
      message_credit_reg <= link_seq_t'(MESSAGE_ROOM);
    end else begin
      if (data_freed) data_credit_reg <= data_credit_reg + 1'b1;
      if (message_freed) message_credit_reg <= message_credit_reg + 1'b1;
    end
  end

  // ---- receiving ------------------------------------------------------------------------------------------------
  flit_t              came_reg, checked_reg;
  logic               came_valid_reg, good_reg, damaged_reg;
  logic [CrcBits-1:0] rx_crc;

  link_crc #(.WIDTH(CoveredBits)) check (
      .clk, .enable(1'b1), .data({rx_flit.header, rx_flit.data}), .crc(rx_crc)
  );

  assign heard = checked_reg.header;
  assign heard_valid = good_reg;
  assign damaged = damaged_reg;

  always_ff @(posedge clk) begin
    came_reg    <= rx_flit;
    checked_reg <= came_reg;
    if (rst) begin
      came_valid_reg <= 1'b0;
      good_reg       <= 1'b0;
      damaged_reg    <= 1'b0;
    end else begin
      came_valid_reg <= rx_valid;
      good_reg       <= came_valid_reg && rx_crc == came_reg.crc;
      damaged_reg    <= came_valid_reg && rx_crc != came_reg.crc;
    end
  end

  link_receiver receiver (
      .clk, .rst, .s_valid(good_reg), .s_kind(heard.kind), .s_seq(heard.seq), .s_epoch(heard.epoch),
      .s_data(checked_reg.data), .m_data_valid, .m_message_valid, .m_data, .ack, .nak, .nak_epoch
  );

  wire unused = &{1'b0, checked_reg.crc};

endmodule : ring_link

// One direction of a link, the sending side: entries are kept until the other side has them, and sent again from the first
// one that it misses.  An entry is only taken when the other side has room for it, so one that is sent is never refused.
// Messages go ahead of data.
module link_sender
  import sync_pkg::*;
#(
    // entries that are on their way at most, a power of two: twice the link's latency at least
    parameter int unsigned WINDOW = 256,
    parameter int unsigned DATA_BITS = EntryBits
) (
    input  logic                 clk,
    input  logic                 rst,

    input  logic                 s_data_valid,
    output logic                 s_data_ready,
    input  logic [DATA_BITS-1:0] s_data,
    input  logic                 s_message_valid,
    output logic                 s_message_ready,
    input  logic [DATA_BITS-1:0] s_message,
    // how many places the other side must have for this message: a new one leaves a place free in a ring of forwarders
    input  logic [1:0]           s_message_places,

    // from the receiver of the other direction: what the other side says of ours
    input  logic                 heard_valid,
    input  link_seq_t            heard_ack,
    input  logic                 heard_nak,
    input  logic                 heard_nak_epoch,
    input  link_seq_t            heard_data_credit,
    input  link_seq_t            heard_message_credit,

    // a flit in each clock, as far as this direction says it
    input  logic                 enable,
    output flit_kind_t           m_kind,
    output link_seq_t            m_seq,
    output logic                 m_epoch,
    output logic [DATA_BITS-1:0] m_data,

    // one clock each: the sender goes back; an entry is sent again
    output logic                 rewound,
    output logic                 resent
);

  if (WINDOW < 2 || (WINDOW & (WINDOW - 1)) != 0 || WINDOW > 2 ** (LinkSeqBits - 1)) begin : gen_bad_window
    $fatal(1, "link_sender: WINDOW must be a power of two, at most half of what sequence numbers count");
  end

  localparam int unsigned IndexBits = $clog2(WINDOW);

  typedef struct packed {
    logic                 is_message;
    logic [DATA_BITS-1:0] data;
  } kept_t;

  (* ram_style = "block" *)
  kept_t     kept [WINDOW];
  kept_t     out_reg;
  link_seq_t write_reg;   // of the next entry that is taken
  link_seq_t send_reg;    // of the next one that is sent
  link_seq_t furthest_reg;  // of the first one that was never sent
  link_seq_t acked_reg;   // of the first one that may be missing over there
  logic      epoch_reg;
  link_seq_t data_reg, data_credit_reg, message_reg, message_credit_reg;

  wire link_seq_t message_places = message_credit_reg - message_reg;
  wire room = write_reg - acked_reg != link_seq_t'(WINDOW);
  wire may_data = room && data_credit_reg != data_reg;
  wire may_message = room && message_places >= link_seq_t'(s_message_places);
  wire take_message = s_message_valid && s_message_ready;
  wire take_data = s_data_valid && s_data_ready;
  wire sends = enable && send_reg != write_reg;
  wire goes_back = heard_valid && heard_nak && heard_nak_epoch == epoch_reg;

  assign s_message_ready = may_message;
  assign s_data_ready = may_data && !take_message;
  assign m_data = out_reg.data;
  assign rewound = goes_back;
  assign resent = sends && send_reg != furthest_reg;

  always_ff @(posedge clk) begin
    if (take_message || take_data)
      kept[write_reg[IndexBits-1:0]] <= '{is_message: take_message, data: take_message ? s_message : s_data};
    if (enable) out_reg <= kept[send_reg[IndexBits-1:0]];
  end

  // A flit is built in two clocks: what is sent, then out of the memory.
  logic sent_reg;
  assign m_kind = !sent_reg ? FLIT_IDLE : out_reg.is_message ? FLIT_MESSAGE : FLIT_DATA;

  always_ff @(posedge clk) begin
    if (rst) begin
      write_reg          <= '0;
      send_reg           <= '0;
      furthest_reg       <= '0;
      acked_reg          <= '0;
      epoch_reg          <= 1'b0;
      data_reg           <= '0;
      data_credit_reg    <= '0;
      message_reg        <= '0;
      message_credit_reg <= '0;
      sent_reg           <= 1'b0;
      m_seq              <= '0;
      m_epoch            <= 1'b0;
    end else begin
      if (take_message || take_data) write_reg <= write_reg + 1'b1;
      if (take_data) data_reg <= data_reg + 1'b1;
      if (take_message) message_reg <= message_reg + 1'b1;
      if (heard_valid) begin
        acked_reg          <= heard_ack;
        data_credit_reg    <= heard_data_credit;
        message_credit_reg <= heard_message_credit;
      end
      if (goes_back) begin
        send_reg  <= heard_ack;
        epoch_reg <= !epoch_reg;
      end else if (sends) begin
        send_reg <= send_reg + 1'b1;
      end
      if (sends && send_reg == furthest_reg) furthest_reg <= furthest_reg + 1'b1;
      if (enable) begin
        sent_reg <= sends;
        m_seq    <= send_reg;
        m_epoch  <= epoch_reg;
      end
    end
  end

endmodule : link_sender

// One direction of a link, the receiving side: hands over each entry once, in order.  Every good flit names the entry that it
// carries or, if it is idle, the next one, so a lost one shows with the first good flit behind it.  Until flits of a new
// epoch come, which the sender begins when it has gone back, nothing is taken.
module link_receiver
  import sync_pkg::*;
#(
    parameter int unsigned DATA_BITS = EntryBits
) (
    input  logic                 clk,
    input  logic                 rst,

    // a flit that came undamaged
    input  logic                 s_valid,
    input  flit_kind_t           s_kind,
    input  link_seq_t            s_seq,
    input  logic                 s_epoch,
    input  logic [DATA_BITS-1:0] s_data,

    // there is always room: the sender sends nothing else
    output logic                 m_data_valid,
    output logic                 m_message_valid,
    output logic [DATA_BITS-1:0] m_data,

    // what the sender of the other direction says for us
    output link_seq_t            ack,
    output logic                 nak,
    output logic                 nak_epoch
);

  wire current = s_valid && s_epoch == (nak_epoch ^ nak);
  wire in_turn = s_seq == ack;
  wire take = current && in_turn && s_kind != FLIT_IDLE;

  assign m_data_valid = take && s_kind == FLIT_DATA;
  assign m_message_valid = take && s_kind == FLIT_MESSAGE;
  assign m_data = s_data;

  always_ff @(posedge clk) begin
    if (rst) begin
      ack       <= '0;
      nak       <= 1'b0;
      nak_epoch <= 1'b0;
    end else begin
      if (take) ack <= ack + 1'b1;
      if (current) begin
        nak       <= !in_turn;
        nak_epoch <= s_epoch;
      end
    end
  end

endmodule : link_receiver

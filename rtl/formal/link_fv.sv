// Proves of link_sender and link_receiver, with a wire of two flits each way that may lose any: what is handed over is what
// was taken, in its order, once, and never more than there was room for.  Entry n of a link has the value n, so a value
// names its place.
module link_fv
  import sync_pkg::*;
#(
    parameter int unsigned WINDOW = 4
) (
    input logic      clk,
    input logic      rst,
    input logic      offer_data,
    input logic      offer_message,
    input logic      enable,
    input logic      lose_forth,
    input logic      lose_back,
    input logic      free_data,
    input logic      free_message
);

  localparam link_seq_t DataRoom = link_seq_t'(3);
  localparam link_seq_t MessageRoom = link_seq_t'(2);

  typedef struct packed {
    logic       valid;
    flit_kind_t kind;
    link_seq_t  seq;
    logic       epoch;
    link_seq_t  data;
  } forth_t;
  typedef struct packed {
    link_seq_t ack;
    logic      nak;
    logic      nak_epoch;
    link_seq_t data_credit;
    link_seq_t message_credit;
  } back_t;

  forth_t     flying_reg, arriving_reg;
  back_t      said_reg, heard_reg;
  logic       data_ready, message_ready, data_valid, message_valid;
  flit_kind_t kind;
  link_seq_t  seq, sent_data, came;
  logic       epoch, rewound, resent;
  link_seq_t  ack;
  logic       nak, nak_epoch;
  link_seq_t  taken_reg, handed_reg;
  link_seq_t  data_credit_reg, message_credit_reg, data_handed_reg, message_handed_reg;

  link_sender #(.WINDOW(WINDOW), .DATA_BITS(LinkSeqBits)) sender (
      .clk, .rst, .s_data_valid(offer_data), .s_data_ready(data_ready), .s_data(taken_reg),
      .s_message_valid(offer_message), .s_message_ready(message_ready), .s_message(taken_reg), .s_message_places(2'd1),
      .heard_valid(!lose_back), .heard_ack(heard_reg.ack), .heard_nak(heard_reg.nak),
      .heard_nak_epoch(heard_reg.nak_epoch), .heard_data_credit(heard_reg.data_credit),
      .heard_message_credit(heard_reg.message_credit), .enable,
      .m_kind(kind), .m_seq(seq), .m_epoch(epoch), .m_data(sent_data), .rewound, .resent
  );

  link_receiver #(.DATA_BITS(LinkSeqBits)) receiver (
      .clk, .rst, .s_valid(arriving_reg.valid && !lose_forth), .s_kind(arriving_reg.kind), .s_seq(arriving_reg.seq),
      .s_epoch(arriving_reg.epoch), .s_data(arriving_reg.data), .m_data_valid(data_valid), .m_message_valid(message_valid),
      .m_data(came), .ack, .nak, .nak_epoch
  );

  wire takes = (offer_data && data_ready) || (offer_message && message_ready);
  wire hands = data_valid || message_valid;
  // credit - room: what was taken out of the buffers
  wire frees_data = free_data && data_credit_reg - DataRoom != data_handed_reg;
  wire frees_message = free_message && message_credit_reg - MessageRoom != message_handed_reg;

  logic past_reg = 1'b0;

  always_ff @(posedge clk) begin
    past_reg <= 1'b1;
    if (!past_reg) assume (rst);
    else assume (!rst);
    if (rst) begin
      flying_reg         <= '0;
      arriving_reg       <= '0;
      said_reg           <= '0;
      heard_reg          <= '0;
      taken_reg          <= '0;
      handed_reg         <= '0;
      data_handed_reg    <= '0;
      message_handed_reg <= '0;
      data_credit_reg    <= DataRoom;
      message_credit_reg <= MessageRoom;
    end else begin
      flying_reg   <= '{valid: enable, kind: kind, seq: seq, epoch: epoch, data: sent_data};
      arriving_reg <= flying_reg;
      said_reg     <= '{ack: ack, nak: nak, nak_epoch: nak_epoch, data_credit: data_credit_reg,
                        message_credit: message_credit_reg};
      heard_reg    <= said_reg;
      taken_reg    <= taken_reg + link_seq_t'(takes);
      handed_reg   <= handed_reg + link_seq_t'(hands);
      data_handed_reg    <= data_handed_reg + link_seq_t'(data_valid);
      message_handed_reg <= message_handed_reg + link_seq_t'(message_valid);
      data_credit_reg    <= data_credit_reg + link_seq_t'(frees_data);
      message_credit_reg <= message_credit_reg + link_seq_t'(frees_message);
    end
  end

  // ---- what makes it inductive: places are counted from what is acknowledged -----------------------------------------
  wire link_seq_t acked = sender.acked_reg;
  wire link_seq_t span = sender.write_reg - acked;
  wire link_seq_t heard = heard_reg.ack - acked;
  wire link_seq_t said = said_reg.ack - acked;
  wire link_seq_t arrived = ack - acked;
  wire link_seq_t sent = sender.send_reg - acked;
  wire link_seq_t furthest = sender.furthest_reg - acked;
  wire            now = sender.epoch_reg;
  // the receiver takes flits of this epoch; `waits`: the sender has not heard yet that one is missing
  wire            current = nak_epoch ^ nak;
  wire            waits = nak && nak_epoch == now;
  wire forth_t    leaving = '{valid: 1'b1, kind: kind, seq: seq, epoch: epoch, data: sent_data};

  function automatic link_seq_t behind(input forth_t f);
    return f.seq + link_seq_t'(f.kind != FLIT_IDLE);
  endfunction

  function automatic logic counts(input forth_t f, input logic which);
    return f.valid && f.epoch == which;
  endfunction

  // A flit of the present epoch carries what is kept for its place, between what has arrived and what was sent.
  function automatic logic sound(input forth_t f, input logic [WINDOW-1:0] messages, input link_seq_t base,
                                 input link_seq_t least, input link_seq_t most);
    return behind(f) - base <= most && f.seq - base >= least && f.seq - base <= most
        && (f.kind == FLIT_IDLE || (f.data == f.seq && f.kind == (messages[f.seq[$clog2(WINDOW)-1:0]] ? FLIT_MESSAGE : FLIT_DATA)));
  endfunction

  function automatic logic follows(input forth_t older, input forth_t younger, input link_seq_t base);
    return younger.seq - base >= behind(older) - base;
  endfunction

  logic [WINDOW-1:0] messages;
  logic              as_taken;
  link_seq_t         data_left, messages_left;

  always_comb begin
    as_taken = 1'b1;
    data_left = '0;
    messages_left = '0;
    for (int unsigned i = 0; i < WINDOW; i++) messages[i] = sender.kept[i].is_message;
    for (int unsigned i = 0; i < WINDOW; i++) begin
      if (link_seq_t'(i) < sender.write_reg - ack) begin
        if (messages[$clog2(WINDOW)'(ack + link_seq_t'(i))]) messages_left += 1'b1;
        else data_left += 1'b1;
      end
      if (link_seq_t'(i) < span && sender.kept[$clog2(WINDOW)'(acked + link_seq_t'(i))].data != acked + link_seq_t'(i))
        as_taken = 1'b0;
    end
  end

  wire heard_nak = heard_reg.nak && heard_reg.nak_epoch == now;
  wire said_nak = said_reg.nak && said_reg.nak_epoch == now;
  wire any_old = (arriving_reg.valid && arriving_reg.epoch != now) || (flying_reg.valid && flying_reg.epoch != now) || epoch != now;

  always_ff @(posedge clk) begin
    if (past_reg && !rst) begin
      in_order : assert (!hands || came == handed_reg);
      at_a_time : assert (!(data_valid && message_valid));
      counted : assert (ack == handed_reg && sender.write_reg == taken_reg);
      room_for_data : assert (!data_valid || data_credit_reg - data_handed_reg != '0);
      room_for_messages : assert (!message_valid || message_credit_reg - message_handed_reg != '0);

      places_in_order : assert (heard <= said && said <= arrived && arrived <= sent && sent <= furthest && furthest <= span
                                && span <= link_seq_t'(WINDOW));
      epochs : assert (nak || nak_epoch == now);
      heard_is_true : assert (!heard_nak || (said_nak && heard_reg.ack == ack));
      said_is_true : assert (!said_nak || (waits && said_reg.ack == ack));
      all_of_this_epoch : assert (!(waits || !nak) || !any_old);
      epochs_in_order : assert (!(counts(arriving_reg, now) && flying_reg.valid && flying_reg.epoch != now)
                                && !(counts(arriving_reg, now) && epoch != now) && !(counts(flying_reg, now) && epoch != now));
      if (!waits) begin
        arriving_sound : assert (!counts(arriving_reg, current) || sound(arriving_reg, messages, acked, arrived, sent));
        flying_sound : assert (!counts(flying_reg, current) || sound(flying_reg, messages, acked, arrived, sent));
        leaving_sound : assert (!counts(leaving, current) || sound(leaving, messages, acked, arrived, sent));
        arriving_first : assert (!(counts(arriving_reg, current) && counts(flying_reg, current)) || follows(arriving_reg, flying_reg, acked));
        flying_first : assert (!(counts(flying_reg, current) && counts(leaving, current)) || follows(flying_reg, leaving, acked));
        leaving_last : assert (!(counts(arriving_reg, current) && counts(leaving, current)) || follows(arriving_reg, leaving, acked));
      end
      kept_as_taken : assert (as_taken);
      data_in_flight : assert (sender.data_reg - data_handed_reg == data_left);
      messages_in_flight : assert (sender.message_reg - message_handed_reg == messages_left);
      data_credits : assert (sender.data_credit_reg - sender.data_reg <= heard_reg.data_credit - sender.data_reg
                             && heard_reg.data_credit - sender.data_reg <= said_reg.data_credit - sender.data_reg
                             && said_reg.data_credit - sender.data_reg <= data_credit_reg - sender.data_reg
                             && data_credit_reg - data_handed_reg <= DataRoom && sender.data_reg - data_handed_reg <= data_credit_reg - data_handed_reg);
      message_credits : assert (sender.message_credit_reg - sender.message_reg <= heard_reg.message_credit - sender.message_reg
                             && heard_reg.message_credit - sender.message_reg <= said_reg.message_credit - sender.message_reg
                             && said_reg.message_credit - sender.message_reg <= message_credit_reg - sender.message_reg
                             && message_credit_reg - message_handed_reg <= MessageRoom
                             && sender.message_reg - message_handed_reg <= message_credit_reg - message_handed_reg);
    end
  end

  logic lost_reg = 1'b0, again_reg = 1'b0;
  always_ff @(posedge clk) begin
    if (rst) begin
      lost_reg <= 1'b0;
      again_reg <= 1'b0;
    end else begin
      if (lose_forth && arriving_reg.valid && arriving_reg.kind != FLIT_IDLE) lost_reg <= 1'b1;
      if (resent) again_reg <= 1'b1;
      recovers : cover (lost_reg && again_reg && handed_reg == link_seq_t'(3) && taken_reg == link_seq_t'(3));
      both_kinds : cover (message_handed_reg != '0 && data_handed_reg == DataRoom);
      twice : cover (rewound && again_reg);
    end
  end

endmodule : link_fv

// The worker's side of P4SGD's slots, Algorithm 3 as docs/explanation/protocol.md corrects it.  Rounds have full numbers; a round is
// in flight from its partial activations (PA) to its confirmation (CNF), and only rounds base .. next - 1 are, each in a
// slot of its own.  A sum is taken only while its round waits for it, a confirmation only while its round waits for that,
// a slot is used again only after its confirmation, and every round is handed over once, in order.
// A round that is not answered in time is repeated: as PA until the sum is here, then as ACK.
// `lacks` is the oldest round whose sum is not here.  An acknowledgement waits until it counts every sum that is: the
// switch, which bounds rounds by the least that it was told, has then been told of a sum by the time it confirms it.
module round_slots
  import serial_pkg::*;
  import transport_pkg::TimerFloor;
#(
    // number of rounds in flight, a power of two, 2..32768
    parameter int unsigned SLOTS = 64,
    // clocks that a round waits at least
    parameter logic [31:0] FLOOR = TimerFloor
) (
    input  logic        clk,
    input  logic        rst,
    // rises: rounds begin at first_seq
    input  logic        enable,
    input  seq_t        first_seq,
    input  logic [15:0] slots,
    // clocks; a round waits at least FLOOR and at most WaitMost
    input  logic [31:0] rto,

    // a round wants to begin; it does when its PA is sent
    input  logic        fresh_valid,

    // a frame to send: of a round that begins, an acknowledgement, or either again
    output logic        send_valid,
    output seq_t        send_seq,
    output logic        send_ack,
    output logic        send_fresh,
    output logic        send_again,
    input  logic        send_ready,
    // the oldest round whose sum is not here; all before it were taken
    output seq_t        lacks,

    // a good frame has arrived: a sum (FA) or a confirmation (CNF)
    input  logic        heard,
    input  logic        heard_sum,
    input  seq_t        heard_seq,
    // the round takes that sum; the round takes that confirmation
    output logic        take_sum,
    output logic        take_confirmation,

    // the oldest sum that has not been handed over
    output logic        hand_valid,
    output seq_t        hand_seq,
    input  logic        hand_ready,

    // no round is in flight
    output logic        idle,
    output seq_t        next
);

  localparam int unsigned SlotBits = $clog2(SLOTS);
  // the longest time that, as a serial number, lies ahead of now
  localparam logic [31:0] WaitMost = 32'h7fff_ffff;

  // `slots`, which it is compared with, has 16 bits.
  if (SLOTS < 2 || SLOTS > 32768 || SLOTS != 1 << SlotBits) begin : gen_bad_slots
    $fatal(1, "round_slots: SLOTS must be a power of two, 2..32768");
  end

  typedef enum logic [1:0] {
    AWAITS_SUM          = 2'd0,
    AWAITS_CONFIRMATION = 2'd1,
    CONFIRMED           = 2'd2
  } state_t;

  state_t state_reg[SLOTS];
  logic   run_reg;
  seq_t   base_reg;  // the oldest round in flight
  seq_t   next_reg;  // the round that begins next
  seq_t   hand_reg;  // the round that is handed over next
  seq_t   lacks_reg;
  logic   told_reg;  // lacks_reg counts every sum that was taken

  function automatic logic flies(seq_t seq);
    return between(seq, base_reg, next_reg);
  endfunction

  wire [15:0] window = slots > 16'(SLOTS) ? 16'(SLOTS) : slots;
  wire       room   = next_reg - base_reg < {16'd0, window};

  // ---- answers ---------------------------------------------------------------------------------------------------
  wire expected = run_reg && heard && flies(heard_seq);

  assign take_sum          = expected && heard_sum && state_reg[heard_seq[SlotBits-1:0]] == AWAITS_SUM;
  assign take_confirmation = expected && !heard_sum && state_reg[heard_seq[SlotBits-1:0]] == AWAITS_CONFIRMATION;

  // ---- acknowledgements: one that finds no room is sent when the round's time is up ---------------------------------
  logic acks_ready;
  logic ack_valid;
  seq_t ack_seq;

  wire ack_goes    = ack_valid && told_reg;
  wire send_is_ack = !send_fresh && ack_goes;

  sync_fifo #(.WIDTH($bits(seq_t)), .DEPTH(8), .RAM_STYLE("distributed")) acks (
      .clk, .rst(rst || !run_reg),
      .s_data(heard_seq), .s_valid(take_sum && acks_ready), .s_ready(acks_ready),
      .m_data(ack_seq), .m_valid(ack_valid), .m_ready(send_is_ack && send_ready && run_reg),
      .level()
  );

  // ---- times: a round is looked at every now and then ----------------------------------------------------------------
  typedef struct packed {
    logic [1:0]  tries;
    logic [31:0] due;
  } timer_t;

  (* ram_style = "distributed" *)
  timer_t timers[SLOTS];

  logic [31:0] now_reg;
  seq_t        look_reg;      // the round to look at
  logic        late_reg;      // late_seq_reg has not been answered in time
  seq_t        late_seq_reg;
  logic [1:0]  late_tries_reg;

  wire timer_t      looked = timers[look_reg[SlotBits-1:0]];
  // as serial numbers, now is not before it is due
  wire              overdue = !newer(looked.due, now_reg);
  wire state_t      late_state = state_reg[late_seq_reg[SlotBits-1:0]];
  wire              late_valid = late_reg && flies(late_seq_reg) && late_state != CONFIRMED;
  wire              late_goes  = late_valid && (late_state == AWAITS_SUM || told_reg);

  // The next stream's settings may be here in the clock in which `enable` is low first: no frame of this stream leaves with them.
  wire going = run_reg && enable;

  assign send_fresh = going && fresh_valid && room;
  assign send_valid = going && (send_fresh || ack_goes || late_goes);
  assign send_again = !send_fresh && !ack_goes;
  assign send_ack   = !send_fresh && (ack_goes || late_state == AWAITS_CONFIRMATION);
  assign send_seq   = send_fresh ? next_reg : ack_goes ? ack_seq : late_seq_reg;

  wire       sent  = send_valid && send_ready;
  wire [1:0] tries = send_again ? late_tries_reg + 2'(late_tries_reg != 2'd3) : 2'd0;

  // What each try waits: twice the one before, never what wraps.
  logic [31:0] wait_reg[4];

  wire [31:0] least = rto < FLOOR ? FLOOR : rto;

  always_ff @(posedge clk) begin
    for (int unsigned i = 0; i < 4; i++) begin
      wait_reg[i] <= {3'd0, least} << i > {3'd0, WaitMost} ? WaitMost : least << i;
    end
    if (sent) timers[send_seq[SlotBits-1:0]] <= '{tries: tries, due: now_reg + wait_reg[tries]};
  end

  always_ff @(posedge clk) begin
    now_reg <= now_reg + 32'd1;
    if (!late_reg || !late_valid || (sent && send_again)) begin
      late_seq_reg   <= look_reg;
      late_tries_reg <= looked.tries;
    end
    if (rst) begin
      now_reg  <= '0;
      late_reg <= 1'b0;
      look_reg <= '0;
    end else if (!late_reg || !late_valid || (sent && send_again)) begin
      late_reg <= run_reg && flies(look_reg) && overdue && !(sent && send_seq[SlotBits-1:0] == look_reg[SlotBits-1:0]);
      look_reg <= flies(look_reg + 32'd1) ? look_reg + 32'd1 : base_reg;
    end
  end

  // ---- handing over ----------------------------------------------------------------------------------------------
  assign hand_valid = run_reg && hand_reg != next_reg && state_reg[hand_reg[SlotBits-1:0]] != AWAITS_SUM;
  assign hand_seq   = hand_reg;
  assign idle       = !run_reg || base_reg == next_reg;
  assign next       = next_reg;

  // ---- what is lacking: one round a clock ----------------------------------------------------------------------------
  wire here = lacks_reg != next_reg && state_reg[lacks_reg[SlotBits-1:0]] != AWAITS_SUM;

  assign lacks = lacks_reg;

  always_ff @(posedge clk) begin
    if (rst || !run_reg) begin
      lacks_reg <= first_seq;
      told_reg  <= 1'b0;
    end else begin
      if (here) lacks_reg <= lacks_reg + 32'd1;
      told_reg <= !here && !take_sum;
    end
  end

  wire free = base_reg != hand_reg && state_reg[base_reg[SlotBits-1:0]] == CONFIRMED;

  always_ff @(posedge clk) begin
    if (take_sum) state_reg[heard_seq[SlotBits-1:0]] <= AWAITS_CONFIRMATION;
    if (take_confirmation) state_reg[heard_seq[SlotBits-1:0]] <= CONFIRMED;
    if (sent && send_fresh) state_reg[next_reg[SlotBits-1:0]] <= AWAITS_SUM;
    if (rst || !enable) begin
      run_reg <= 1'b0;
    end else if (!run_reg) begin
      run_reg  <= 1'b1;
      base_reg <= first_seq;
      next_reg <= first_seq;
      hand_reg <= first_seq;
    end else begin
      if (sent && send_fresh) next_reg <= next_reg + 32'd1;
      if (hand_valid && hand_ready) hand_reg <= hand_reg + 32'd1;
      if (free) base_reg <= base_reg + 32'd1;
    end
  end

endmodule : round_slots

// Writes completion records (LuWu, Figure 7, step 4).  Pushes and pulls take turns.  A pull's completion arrives here
// after memory has answered all its data, so the record is in memory only after them.  `done` is high for a clock when
// memory has answered the record; the values that the statistics count are beside it.
module completion_writer
  import hostif_pkg::*;
(
    input  logic                         clk,
    input  logic                         rst,
    input  logic [31:0]                  now,

    input  completion_t                  s_push,
    input  logic                         s_push_valid,
    output logic                         s_push_ready,
    input  completion_t                  s_pull,
    input  logic                         s_pull_valid,
    output logic                         s_pull_ready,

    // to the write engine
    output physical_t                    m_record_address,
    output record_t                      m_record,
    output logic                         m_record_valid,
    input  logic                         m_record_ready,
    input  logic                         record_done,
    input  logic                         record_error,

    // high for a clock: a record is in memory, or lost to a bus error
    output logic                         done,
    output logic                         done_lost,
    output logic                         done_is_pull,
    output status_t                      done_status,
    output logic [31:0]                  done_bytes,
    output logic [31:0]                  done_saturated,
    output logic [31:0]                  done_nonfinite,
    // clocks from the request to the completion's departure
    output logic [31:0]                  done_latency
);

  // ---- a record at a time to the write engine --------------------------------------------------------------
  completion_t completion_reg;
  logic [31:0] latency_reg;
  logic        offer_reg;  // the write engine has not taken the record in completion_reg
  logic        pull_first_reg;
  logic        room;

  wire choose_pull = s_pull_valid && (pull_first_reg || !s_push_valid);
  wire may_take = room && (!offer_reg || m_record_ready);

  assign s_pull_ready = may_take && choose_pull;
  assign s_push_ready = may_take && !choose_pull;

  wire takes = may_take && (s_push_valid || s_pull_valid);
  completion_t taken;
  assign taken = choose_pull ? s_pull : s_push;

  assign m_record_valid   = offer_reg;
  assign m_record_address = completion_reg.address;

  always_comb begin
    m_record           = '0;
    m_record.latency   = latency_reg;
    m_record.exponent  = completion_reg.exponent;
    m_record.needed    = completion_reg.needed;
    m_record.nonfinite = completion_reg.nonfinite;
    m_record.saturated = completion_reg.saturated;
    m_record.bytes     = completion_reg.bytes;
    m_record.tag       = completion_reg.tag;
    m_record.flags     = completion_reg.flags;
    m_record.status    = completion_reg.status;
  end

  always_ff @(posedge clk) begin
    if (takes) begin
      completion_reg <= taken;
      latency_reg    <= now - taken.started;
    end
    if (rst) begin
      offer_reg      <= 1'b0;
      pull_first_reg <= 1'b0;
    end else begin
      if (takes) begin
        offer_reg      <= 1'b1;
        pull_first_reg <= !choose_pull;
      end else if (m_record_ready) begin
        offer_reg <= 1'b0;
      end
    end
  end

  // ---- records that memory has not answered yet, and answered ones that wait for `done` ------------------------
  localparam int unsigned Records = 32;
  // clocks between two `done`s: the statistics need so many to count one
  localparam int unsigned TellClocks = 6;

  typedef struct packed {
    logic        is_pull;
    status_t     status;
    logic [31:0] bytes;
    logic [31:0] saturated;
    logic [31:0] nonfinite;
    logic [31:0] latency;
  } outcome_t;

  outcome_t                       outcome;
  logic                           outcome_valid;
  logic                           lost;
  logic                           answered;
  logic                           answer_room;
  logic                           tells;
  logic [$clog2(TellClocks+1)-1:0] wait_reg;

  assign tells = outcome_valid && answered && wait_reg == '0;

  sync_fifo #(.WIDTH($bits(outcome_t)), .DEPTH(Records), .RAM_STYLE("distributed")) waiting (
      .clk,
      .rst,
      .s_data({choose_pull, taken.status, taken.bytes, taken.saturated, taken.nonfinite, now - taken.started}),
      .s_valid(takes),
      .s_ready(room),
      .m_data(outcome),
      .m_valid(outcome_valid),
      .m_ready(tells),
      .level()
  );

  sync_fifo #(.WIDTH(1), .DEPTH(2 * Records), .RAM_STYLE("distributed")) answers (
      .clk,
      .rst,
      .s_data(record_error),
      .s_valid(record_done),
      .s_ready(answer_room),
      .m_data(lost),
      .m_valid(answered),
      .m_ready(tells),
      .level()
  );

  always_ff @(posedge clk) begin
    done_lost      <= lost;
    done_is_pull   <= outcome.is_pull;
    done_status    <= outcome.status;
    done_bytes     <= outcome.bytes;
    done_saturated <= outcome.saturated;
    done_nonfinite <= outcome.nonfinite;
    done_latency   <= outcome.latency;
    if (rst) begin
      done     <= 1'b0;
      wait_reg <= '0;
    end else begin
      done <= tells;
      if (tells) wait_reg <= $bits(wait_reg)'(TellClocks);
      else if (wait_reg != '0) wait_reg <= wait_reg - 1'b1;
    end
  end

  wire unused = &{1'b0, completion_reg.started, answer_room};

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_answers : assert (!record_done || answer_room);
`endif

endmodule : completion_writer

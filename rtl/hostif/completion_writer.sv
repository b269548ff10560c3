// Writes completion records (LuWu, Figure 7, step 4).  Pushes and pulls take turns; what comes in has all its data behind
// it, so a record is in memory only after them.  `done` says so for a clock, with what the statistics want.
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

    // for a clock: a record is in memory, or lost to a bus error
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

  completion_t completion_reg;
  logic [31:0] latency_reg;
  logic        is_pull_reg;
  logic        busy_reg;   // from when it is taken until memory has it
  logic        offer_reg;  // the write engine has not taken it
  logic        pull_first_reg;

  wire choose_pull = s_pull_valid && (pull_first_reg || !s_push_valid);

  assign s_pull_ready = !busy_reg && choose_pull;
  assign s_push_ready = !busy_reg && !choose_pull;

  wire takes = !busy_reg && (s_push_valid || s_pull_valid);

  assign m_record_valid   = offer_reg;
  assign m_record_address = completion_reg.address;

  record_t record;

  always_comb begin
    record           = '0;
    record.latency   = latency_reg;
    record.exponent  = completion_reg.exponent;
    record.nonfinite = completion_reg.nonfinite;
    record.saturated = completion_reg.saturated;
    record.bytes     = completion_reg.bytes;
    record.tag       = completion_reg.tag;
    record.flags     = completion_reg.flags;
    record.status    = completion_reg.status;
  end

  assign m_record = record;
  wire unused = &{1'b0, completion_reg.started};

  always_ff @(posedge clk) begin
    if (takes) begin
      completion_reg <= choose_pull ? s_pull : s_push;
      latency_reg    <= now - (choose_pull ? s_pull.started : s_push.started);
      is_pull_reg    <= choose_pull;
    end
    done_lost      <= record_error;
    done_is_pull   <= is_pull_reg;
    done_status    <= completion_reg.status;
    done_bytes     <= completion_reg.bytes;
    done_saturated <= completion_reg.saturated;
    done_nonfinite <= completion_reg.nonfinite;
    done_latency   <= latency_reg;
    if (rst) begin
      busy_reg       <= 1'b0;
      offer_reg      <= 1'b0;
      pull_first_reg <= 1'b0;
      done           <= 1'b0;
    end else begin
      done <= record_done;
      if (takes) begin
        busy_reg       <= 1'b1;
        offer_reg      <= 1'b1;
        pull_first_reg <= !choose_pull;
      end
      if (m_record_valid && m_record_ready) offer_reg <= 1'b0;
      if (record_done) busy_reg <= 1'b0;
    end
  end

endmodule : completion_writer

// The counters of the host side behind one index (nic_pkg::host_stat_t).
module host_stats
  import hostif_pkg::*;
  import nic_pkg::*;
  import transport_pkg::StatBits;
(
    input  logic                         clk,
    input  logic                         rst,

    input  host_events_t                 events,
    input  host_stalls_t                 stalls,
    // a read or write of a register was refused
    input  logic                         register_refused,

    input  logic [HostStatIndexBits-1:0] index,
    // two clocks later
    output logic [StatBits-1:0]          value
);

  // ---- what happens or not in a clock -----------------------------------------------------------------------
  logic [31:0]         happens;
  logic [StatBits-1:0] total;
  logic [4:0]          index_reg;
  logic                summed_reg;

  always_comb begin
    happens                                 = '0;
    happens[5'(events.done_status[3:0])]    = events.done;
    happens[HOST_STAT_PUSHES[4:0]]          = events.done && !events.done_is_pull;
    happens[HOST_STAT_PULLS[4:0]]           = events.done && events.done_is_pull;
    happens[HOST_STAT_PUSH_REFUSED[4:0]]    = events.push_refused;
    happens[HOST_STAT_PULL_REFUSED[4:0]]    = events.pull_refused;
    happens[HOST_STAT_PUSH_MISSES[4:0]]     = events.push_missed;
    happens[HOST_STAT_PULL_MISSES[4:0]]     = events.pull_missed;
    happens[HOST_STAT_PUSH_UNANSWERABLE[4:0]] = events.push_unanswerable;
    happens[HOST_STAT_PULL_UNANSWERABLE[4:0]] = events.pull_unanswerable;
    happens[HOST_STAT_BUS_ERRORS[4:0]]      = events.bus_error;
    happens[HOST_STAT_RECORDS_LOST[4:0]]    = events.done && events.done_lost;
    happens[HOST_STAT_REGISTER_ERRORS[4:0]] = register_refused;
    happens[HOST_STAT_PUSH_MEMORY_CLOCKS[4:0]]    = stalls.push_memory;
    happens[HOST_STAT_PUSH_TRANSPORT_CLOCKS[4:0]] = stalls.push_transport;
    happens[HOST_STAT_PULL_WAIT_CLOCKS[4:0]]      = stalls.pull_waits;
    happens[HOST_STAT_VECTOR_WAIT_CLOCKS[4:0]]    = stalls.vector_waits;
    happens[HOST_STAT_PULL_MEMORY_CLOCKS[4:0]]    = stalls.pull_memory;
  end

  event_counters #(.EVENTS(32), .WIDTH(StatBits)) counters (
      .clk,
      .rst,
      .events(happens),
      .index(index_reg),
      .value(total)
  );

  // ---- sums, least and most: one completion takes four clocks ---------------------------------------------------
  logic [StatBits-1:0] sum_reg[8];  // {pull, bytes | latency | saturated | nonfinite}
  logic [31:0]         least_reg[2];
  logic [31:0]         most_reg[2];
  logic [2:0]          step_reg;    // 4: nothing to add
  host_events_t        done_reg;
  logic [31:0]         term;
  logic [StatBits-1:0] sum;

  assign sum = sum_reg[{done_reg.done_is_pull, step_reg[1:0]}] + StatBits'(term);

  always_comb begin
    case (step_reg[1:0])
      2'd0: term = done_reg.done_bytes;
      2'd1: term = done_reg.done_latency;
      2'd2: term = done_reg.done_saturated;
      default: term = done_reg.done_nonfinite;
    endcase
  end

  wire counts = events.done && !events.done_lost;

  always_ff @(posedge clk) begin
    if (rst) begin
      step_reg  <= 3'd4;
      sum_reg   <= '{default: '0};
      least_reg <= '{default: '1};
      most_reg  <= '{default: '0};
    end else begin
      if (counts) begin
        done_reg <= events;
        step_reg <= 3'd0;
        if (events.done_latency < least_reg[events.done_is_pull]) least_reg[events.done_is_pull] <= events.done_latency;
        if (events.done_latency > most_reg[events.done_is_pull]) most_reg[events.done_is_pull] <= events.done_latency;
      end else if (!step_reg[2]) begin
        sum_reg[{done_reg.done_is_pull, step_reg[1:0]}] <= sum;
        step_reg <= step_reg + 3'd1;
      end
    end
  end

  // ---- one index ------------------------------------------------------------------------------------------------
  always_ff @(posedge clk) begin
    index_reg  <= index[4:0];
    summed_reg <= index[5];
    if (!summed_reg) value <= total;
    else if (!index_reg[3]) value <= sum_reg[index_reg[2:0]];
    else value <= StatBits'(index_reg[1] ? most_reg[index_reg[0]] : least_reg[index_reg[0]]);
  end

  wire unused = &{1'b0, events.push_missed_address, events.pull_missed_address, events.done_status[7:4], index_reg,
                  done_reg};

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_pace : assert (!counts || step_reg[2]);
`endif

endmodule : host_stats

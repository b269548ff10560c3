// All counters of a transport behind one index (transport_pkg::stat_t).
module transport_stats
  import serial_pkg::*;
  import transport_pkg::*;
(
    input  logic                     clk,
    input  logic                     rst,

    // STAT_TX_VECTORS .. STAT_RX_FULL_CLOCKS
    input  logic [15:0]              events,
    input  logic                     frame_end,
    input  reject_t                  frame_reject,
    input  logic                     sent,
    input  logic [15:0]              sent_bytes,
    input  logic [6:0]               received_bytes,

    // for the round trip
    input  logic                     tx_run,
    input  logic                     first_sent,
    input  seq_t                     first_seq,
    input  seq_t                     acked,
    input  logic                     timeout,

    input  logic [StatIndexBits-1:0] stat_index,
    // two clocks later
    output logic [StatBits-1:0]      stat_value
);

  logic [StatIndexBits-1:0] index_reg;
  logic [StatBits-1:0]      value_reg;
  logic [StatBits-1:0]      tx_bytes_reg;
  logic [StatBits-1:0]      rx_bytes_reg;
  logic [StatBits-1:0]      event_total;
  logic [31:0]              trips;
  logic [31:0]              trip_least;
  logic [31:0]              trip_most;
  logic [StatBits-1:0]      trip_sum;
  logic [15:0]              rejects;

  assign stat_value = value_reg;

  always_comb begin
    rejects = 16'd0;
    if (frame_end && frame_reject != REJECT_NONE) rejects[frame_reject] = 1'b1;
  end

  event_counters #(.EVENTS(32), .WIDTH(StatBits)) counters (
      .clk,
      .rst,
      .events({rejects, events}),
      .index(index_reg[4:0]),
      .value(event_total)
  );

  round_trip_meter #(.WIDTH(StatBits)) trip (
      .clk,
      .rst,
      .run(tx_run),
      .sent(first_sent),
      .sent_seq(first_seq),
      .acked,
      .timeout,
      .count(trips),
      .least(trip_least),
      .most(trip_most),
      .sum(trip_sum)
  );

  always_ff @(posedge clk) begin
    index_reg <= stat_index;
    case (stat_t'(index_reg))
      STAT_TX_BYTES: value_reg <= tx_bytes_reg;
      STAT_RX_BYTES: value_reg <= rx_bytes_reg;
      STAT_ROUND_TRIPS: value_reg <= StatBits'(trips);
      STAT_ROUND_TRIP_SUM_CLOCKS: value_reg <= trip_sum;
      STAT_ROUND_TRIP_MIN_CLOCKS: value_reg <= StatBits'(trip_least);
      STAT_ROUND_TRIP_MAX_CLOCKS: value_reg <= StatBits'(trip_most);
      default: value_reg <= index_reg[5] ? '0 : event_total;
    endcase
    if (rst) begin
      tx_bytes_reg <= '0;
      rx_bytes_reg <= '0;
    end else begin
      if (sent) tx_bytes_reg <= tx_bytes_reg + StatBits'(sent_bytes);
      rx_bytes_reg <= rx_bytes_reg + StatBits'(received_bytes);
    end
  end

endmodule : transport_stats

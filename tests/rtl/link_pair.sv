// Two ends of a ring_link with wires of LATENCY clocks between them, on which a test damages and loses flits.
module link_pair
  import sync_pkg::*;
#(
    parameter int unsigned LATENCY = 12,
    parameter int unsigned WINDOW = 64,
    parameter int unsigned DATA_ROOM = 32,
    parameter int unsigned MESSAGE_ROOM = 4
) (
    input  logic              clk,
    input  logic              rst,

    input  logic [1:0]        s_data_valid,
    output logic [1:0]        s_data_ready,
    input  logic [1:0][511:0] s_data,
    input  logic [1:0]        s_message_valid,
    output logic [1:0]        s_message_ready,
    input  logic [1:0][511:0] s_message,
    input  logic [1:0][1:0]   s_message_places,

    output logic [1:0]        m_data_valid,
    output logic [1:0]        m_message_valid,
    output logic [1:0][511:0] m_data,
    input  logic [1:0]        data_freed,
    input  logic [1:0]        message_freed,

    // of the flit that this end sends in this clock: its wire takes none; it vanishes; two of its bits turn over
    input  logic [1:0]        stall,
    input  logic [1:0]        lose,
    input  logic [1:0]        damage,
    input  logic [1:0][9:0]   damaged_bit,
    input  logic [1:0][9:0]   other_bit,

    output logic [1:0]        damaged,
    output logic [1:0]        rewound,
    output logic [1:0]        resent
);

  flit_t [1:0] tx, rx;
  logic  [1:0] rx_valid;

  for (genvar i = 0; i < 2; i++) begin : gen_end
    wire [FlitBits-1:0] turned = damage[i] ? FlitBits'(1) << damaged_bit[i] | FlitBits'(1) << other_bit[i] : '0;

    stream_delay #(.WIDTH(FlitBits), .STAGES(LATENCY)) wires (
        .clk, .rst, .s_data(tx[i] ^ turned), .s_valid(!stall[i] && !lose[i]), .enable(),
        .m_data(rx[1-i]), .m_valid(rx_valid[1-i]), .m_ready(1'b1)
    );

    ring_link #(.WINDOW(WINDOW), .DATA_ROOM(DATA_ROOM), .MESSAGE_ROOM(MESSAGE_ROOM)) link (
        .clk, .rst,
        .s_data_valid(s_data_valid[i]), .s_data_ready(s_data_ready[i]), .s_data(s_data[i]),
        .s_message_valid(s_message_valid[i]), .s_message_ready(s_message_ready[i]), .s_message(s_message[i]),
        .s_message_places(s_message_places[i]),
        .m_data_valid(m_data_valid[i]), .m_message_valid(m_message_valid[i]), .m_data(m_data[i]),
        .data_freed(data_freed[i]), .message_freed(message_freed[i]),
        .tx_flit(tx[i]), .tx_ready(!stall[i]), .rx_flit(rx[i]), .rx_valid(rx_valid[i]),
        .damaged(damaged[i]), .rewound(rewound[i]), .resent(resent[i])
    );
  end

endmodule : link_pair

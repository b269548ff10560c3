// Takes a frame's first beat apart: Ethernet, IPv4 and UDP against the addresses, and our header.  What it says comes a clock
// after that beat, and stays until the next frame's.
module header_parser
  import catchment_wire_pkg::*;
  import transport_pkg::*;
(
    input  logic              clk,
    input  address_settings_t address,

    // a frame's first beat, byte 0 in the low bits
    input  logic [511:0]      data,
    input  logic              first,

    output header_t           header,
    // the frame is UDP in IPv4, from the peer to us; a header with options hides the ports
    output logic              ours,
    // IPv4 without options, in one piece
    output logic              plain,
    output logic              checksum_good,
    output logic [15:0]       ip_length,
    output logic [15:0]       udp_length
);

  // First byte of the frame in the high bits.
  logic [511:0] in_order;

  for (genvar i = 0; i < 64; i++) begin : gen_byte
    assign in_order[511-8*i-:8] = data[8*i+:8];
  end

  wire [47:0]  to_mac     = in_order[511-:48];
  wire [15:0]  ether_type = in_order[511-96-:16];
  wire [159:0] ip         = in_order[511-112-:160];
  wire [15:0]  fragment   = ip[159-48-:16];
  wire [7:0]   protocol   = ip[159-72-:8];
  wire [63:0]  udp        = in_order[511-272-:64];
  wire         is_plain   = ip[159-:8] == Ipv4FirstByte && (fragment & Ipv4Fragment) == 16'd0;

  function automatic logic [17:0] add3(logic [15:0] a, logic [15:0] b, logic [15:0] c);
    return {2'd0, a} + {2'd0, b} + {2'd0, c};
  endfunction

  header_t     header_reg;
  logic        plain_reg;
  logic        ours_reg;
  logic [17:0] sum_reg[3];
  logic [15:0] word_reg;
  logic [15:0] ip_length_reg;
  logic [15:0] udp_length_reg;

  always_ff @(posedge clk) begin
    if (first) begin
      header_reg     <= in_order[175:0];
      plain_reg      <= is_plain;
      ours_reg       <= to_mac == address.local_mac && ether_type == EtherTypeIpv4 && protocol == Ipv4ProtocolUdp
                        && ip[63:32] == address.peer_ip && ip[31:0] == address.local_ip
                        && (!is_plain || udp[63:32] == {address.peer_port, address.local_port});
      for (int unsigned i = 0; i < 3; i++) sum_reg[i] <= add3(ip[48*i+:16], ip[48*i+16+:16], ip[48*i+32+:16]);
      word_reg       <= ip[159-:16];
      ip_length_reg  <= ip[159-16-:16];
      udp_length_reg <= udp[31:16];
    end
  end

  // The ten words' sum; its carries, at most nine, added to its low word make all ones: no other adder is needed to see that.
  wire [19:0] sum = {2'd0, sum_reg[0]} + {2'd0, sum_reg[1]} + {2'd0, sum_reg[2]} + {4'd0, word_reg};

  assign header        = header_reg;
  assign ours          = ours_reg;
  assign plain         = plain_reg;
  assign checksum_good = &sum[15:4] && sum[3:0] == ~sum[19:16];
  assign ip_length     = ip_length_reg;
  assign udp_length    = udp_length_reg;

  wire unused = &{1'b0, in_order[511-48-:48], udp[15:0], ip[159-32-:16], address.peer_mac};

endmodule : header_parser

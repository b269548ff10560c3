// Ethernet, IPv4, UDP and our header as one beat: byte 0 of the frame in the low bits, a field's first byte first.
module header_builder
  import catchment_wire_pkg::*;
  import transport_pkg::*;
(
    input  logic              clk,
    input  address_settings_t address,

    // our header and the bytes behind it
    input  header_t           header,
    input  logic [15:0]       payload_bytes,
    // the header is taken into the register
    input  logic              enable,

    // with the next clock
    output logic [511:0]      beat,
    output logic [15:0]       frame_bytes
);

  localparam logic [15:0] Ipv4First    = {Ipv4FirstByte, 8'd0};  // and no service class
  localparam logic [15:0] HopsProtocol = {Ipv4Hops, Ipv4ProtocolUdp};

  // One's complement sum of two words.
  function automatic logic [15:0] add(logic [15:0] a, logic [15:0] b);
    logic [16:0] sum;
    sum = {1'b0, a} + {1'b0, b};
    return sum[15:0] + {15'd0, sum[16]};
  endfunction

  // ---- what the addresses contribute to the checksum: at rest while a stream runs ---------------------------
  logic [15:0] local_sum_reg;
  logic [15:0] peer_sum_reg;
  logic [15:0] address_sum_reg;
  logic [15:0] fixed_sum_reg;

  always_ff @(posedge clk) begin
    local_sum_reg   <= add(address.local_ip[31:16], address.local_ip[15:0]);
    peer_sum_reg    <= add(address.peer_ip[31:16], address.peer_ip[15:0]);
    address_sum_reg <= add(local_sum_reg, peer_sum_reg);
    fixed_sum_reg   <= add(address_sum_reg, add(Ipv4First, add(Ipv4DontFragment, HopsProtocol)));
  end

  // ---- one header --------------------------------------------------------------------------------------------
  header_t     header_reg;
  logic [15:0] udp_length_reg;
  logic [15:0] ip_length_reg;
  logic [15:0] checksum_reg;

  wire [15:0] udp_length = payload_bytes + UdpBytes + 16'(HeaderBytes);
  wire [15:0] ip_length  = payload_bytes + Ipv4Bytes + UdpBytes + 16'(HeaderBytes);

  always_ff @(posedge clk) begin
    if (enable) begin
      header_reg     <= header;
      udp_length_reg <= udp_length;
      ip_length_reg  <= ip_length;
      checksum_reg   <= ~add(fixed_sum_reg, ip_length);
    end
  end

  assign frame_bytes = ip_length_reg + EthernetBytes;

  // First byte of the frame in the high bits, then turned round.
  wire [511:0] in_order = {
    address.peer_mac, address.local_mac, EtherTypeIpv4,
    Ipv4First, ip_length_reg, 16'd0, Ipv4DontFragment, HopsProtocol, checksum_reg, address.local_ip, address.peer_ip,
    address.local_port, address.peer_port, udp_length_reg, 16'd0,
    header_reg
  };

  for (genvar i = 0; i < 64; i++) begin : gen_byte
    assign beat[8*i+:8] = in_order[511-8*i-:8];
  end

endmodule : header_builder

// Devices in a ring: a sync_core each, a memory each, and links of LATENCY clocks; the first last + 1 of them take part.
module sync_ring #(
    parameter int unsigned DEVICES = 16,
    parameter int unsigned LATENCY = 20,
    parameter int unsigned READ_LATENCY = 5,
    parameter int unsigned DEPTH = 8192,
    parameter int unsigned ENTRIES = 256
) (
    input  logic               clk,
    input  logic               rst,
    input  logic [3:0]         last,

    input  logic [DEVICES-1:0] start_valid,
    output logic [DEVICES-1:0] start_ready,
    input  logic [31:0]        start_address,
    input  logic [15:0]        start_entries,
    input  logic [15:0]        start_segment,
    input  logic               start_maximum,
    output logic [DEVICES-1:0] done,
    output logic [DEVICES-1:0] sending,

    // high: this device's link, its memory's reads or writes stand still
    input  logic [DEVICES-1:0] stall_link,
    input  logic [DEVICES-1:0] stall_read,
    input  logic [DEVICES-1:0] stall_write,

    // the memories, for the test
    input  logic               poke,
    input  logic [3:0]         poke_device,
    input  logic [31:0]        poke_address,
    input  logic [511:0]       poke_data,
    input  logic [3:0]         peek_device,
    input  logic [31:0]        peek_address,
    output logic [511:0]       peek_data
);

  logic [DEVICES-1:0]        out_valid, out_ready, in_valid, in_ready;
  logic [DEVICES-1:0][511:0] out_data, in_data, peeked;

  logic [DEVICES-1:0]        arrives_from;
  logic [DEVICES-1:0][511:0] arrived_from;

  assign peek_data = peeked[peek_device];
  assign sending = out_valid & out_ready;

  for (genvar i = 0; i < DEVICES; i++) begin : gen_device
    logic [511:0] memory[DEPTH];
    logic         read_valid, local_valid, write_valid;
    logic [31:0]  read_address, write_address;
    logic [511:0] local_data, write_data;
    wire          takes_part = 4'(i) <= last;
    wire          link_enable;
    wire          from_last = i == 0;
    wire [3:0]    source = from_last ? last : 4'(i - 1);

    assign peeked[i] = memory[peek_address[$clog2(DEPTH)-1:0]];

    // The link to the next device.
    assign out_ready[i] = link_enable && !stall_link[i];
    logic         arrives;
    logic [511:0] arrived;
    wire  [3:0]   after = 4'(i) == last ? 4'd0 : 4'(i + 1);
    stream_delay #(.WIDTH(512), .STAGES(LATENCY)) link (
        .clk, .rst, .s_data(out_data[i]), .s_valid(out_valid[i] && !stall_link[i]), .enable(link_enable),
        .m_data(arrived), .m_valid(arrives), .m_ready(in_ready[after])
    );
    assign in_valid[i] = takes_part && arrives_from[source];
    assign in_data[i]  = arrived_from[source];

    stream_delay #(.WIDTH(512), .STAGES(READ_LATENCY)) reads (
        .clk, .rst, .s_data(memory[read_address[$clog2(DEPTH)-1:0]]), .s_valid(read_valid && !stall_read[i]), .enable(),
        .m_data(local_data), .m_valid(local_valid), .m_ready(1'b1)
    );

    assign arrives_from[i] = arrives;
    assign arrived_from[i] = arrived;

    sync_core #(.ENTRIES(ENTRIES)) core (
        .clk, .rst, .position(4'(i)), .last,
        .start_valid(start_valid[i]), .start_ready(start_ready[i]), .start_address, .start_entries, .start_segment,
        .start_maximum, .done(done[i]),
        .m_read_valid(read_valid), .m_read_ready(!stall_read[i]), .m_read_address(read_address),
        .s_local_valid(local_valid), .s_local_data(local_data),
        .m_write_valid(write_valid), .m_write_ready(!stall_write[i]), .m_write_address(write_address),
        .m_write_data(write_data),
        .s_link_valid(in_valid[i]), .s_link_ready(in_ready[i]), .s_link_data(in_data[i]), .link_freed(),
        .m_link_valid(out_valid[i]), .m_link_ready(out_ready[i]), .m_link_data(out_data[i])
    );

    always_ff @(posedge clk) begin
      if (poke && poke_device == 4'(i)) memory[poke_address[$clog2(DEPTH)-1:0]] <= poke_data;
      else if (write_valid && !stall_write[i]) memory[write_address[$clog2(DEPTH)-1:0]] <= write_data;
    end
  end

endmodule : sync_ring

// The requests of one direction that wait, first in, first out.  A request that finds the queue full is refused, and
// the module at `refused` counts it; the driver reads `free` before it rings the doorbell.
module request_queue
  import hostif_pkg::*;
#(
    // number of requests that may wait, a power of two
    parameter int unsigned DEPTH = 16
) (
    input  logic                   clk,
    input  logic                   rst,
    input  logic [31:0]            now,

    // high for a clock: the host makes a request; this module fills in `started`
    input  request_t               request,
    input  logic                   ring,
    output logic                   refused,
    output logic [$clog2(DEPTH):0] free,

    output request_t               m_request,
    output logic                   m_request_valid,
    input  logic                   m_request_ready
);

  localparam int unsigned CountBits = $clog2(DEPTH) + 1;

  request_t             stamped;
  logic                 ready;
  logic [CountBits-1:0] free_reg;

  always_comb begin
    stamped         = request;
    stamped.started = now;
  end

  wire enters = ring && free_reg != '0;
  wire leaves = m_request_valid && m_request_ready;

  assign free = free_reg;

  always_ff @(posedge clk) begin
    if (rst) begin
      free_reg <= CountBits'(DEPTH);
      refused  <= 1'b0;
    end else begin
      free_reg <= free_reg - CountBits'(enters) + CountBits'(leaves);
      refused  <= ring && free_reg == '0;
    end
  end

  sync_fifo #(.WIDTH($bits(request_t)), .DEPTH(DEPTH), .RAM_STYLE("distributed")) waiting (
      .clk,
      .rst,
      .s_data(stamped),
      .s_valid(enters),
      .s_ready(ready),
      .m_data(m_request),
      .m_valid(m_request_valid),
      .m_ready(m_request_ready),
      .level()
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk) if (!rst) a_room : assert (!enters || ready);
`else
  wire unused = &{1'b0, ready};
`endif

endmodule : request_queue

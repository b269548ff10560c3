// AXI4-Lite, AXI4 and AXI-Stream as lists of ports, and their connection, each written once (docs/explanation/rtl.md).
//
// PORTS macros stand in a module's list of ports, CONNECT macros in an instance's; P is the prefix of the instance's ports, Q that
// of the signals that they meet, SELECT which of several (`[i]`).  Neither begins nor ends with a comma.
// SIGNALS macros declare what lies between two instances.
`ifndef CATCHMENT_PORTS_SVH
`define CATCHMENT_PORTS_SVH

// ---- AXI4-Lite, 32 bits of data ------------------------------------------------------------------------------
`define AXIL_SLAVE_PORTS(P, ADDRESS_BITS) \
    input  logic [ADDRESS_BITS-1:0] P``_awaddr, \
    input  logic [2:0]              P``_awprot, \
    input  logic                    P``_awvalid, \
    output logic                    P``_awready, \
    input  logic [31:0]             P``_wdata, \
    input  logic [3:0]              P``_wstrb, \
    input  logic                    P``_wvalid, \
    output logic                    P``_wready, \
    output logic [1:0]              P``_bresp, \
    output logic                    P``_bvalid, \
    input  logic                    P``_bready, \
    input  logic [ADDRESS_BITS-1:0] P``_araddr, \
    input  logic [2:0]              P``_arprot, \
    input  logic                    P``_arvalid, \
    output logic                    P``_arready, \
    output logic [31:0]             P``_rdata, \
    output logic [1:0]              P``_rresp, \
    output logic                    P``_rvalid, \
    input  logic                    P``_rready

`define AXIL_CONNECT(P, Q) \
    .P``_awaddr(Q``_awaddr), .P``_awprot(Q``_awprot), .P``_awvalid(Q``_awvalid), .P``_awready(Q``_awready), \
    .P``_wdata(Q``_wdata), .P``_wstrb(Q``_wstrb), .P``_wvalid(Q``_wvalid), .P``_wready(Q``_wready), \
    .P``_bresp(Q``_bresp), .P``_bvalid(Q``_bvalid), .P``_bready(Q``_bready), \
    .P``_araddr(Q``_araddr), .P``_arprot(Q``_arprot), .P``_arvalid(Q``_arvalid), .P``_arready(Q``_arready), \
    .P``_rdata(Q``_rdata), .P``_rresp(Q``_rresp), .P``_rvalid(Q``_rvalid), .P``_rready(Q``_rready)

// ---- AXI4, the signals that change: beats of 64 bytes, INCR, one id.  DIMENSION for several ports: `[N-1:0]`. --
`define AXI_WRITE_PORTS(P) \
    output logic [63:0]  P``_awaddr, \
    output logic [7:0]   P``_awlen, \
    output logic         P``_awvalid, \
    input  logic         P``_awready, \
    output logic [511:0] P``_wdata, \
    output logic [63:0]  P``_wstrb, \
    output logic         P``_wlast, \
    output logic         P``_wvalid, \
    input  logic         P``_wready, \
    input  logic [1:0]   P``_bresp, \
    input  logic         P``_bvalid, \
    output logic         P``_bready

`define AXI_WRITE_CONNECT(P, Q) \
    .P``_awaddr(Q``_awaddr), .P``_awlen(Q``_awlen), .P``_awvalid(Q``_awvalid), .P``_awready(Q``_awready), \
    .P``_wdata(Q``_wdata), .P``_wstrb(Q``_wstrb), .P``_wlast(Q``_wlast), .P``_wvalid(Q``_wvalid), \
    .P``_wready(Q``_wready), .P``_bresp(Q``_bresp), .P``_bvalid(Q``_bvalid), .P``_bready(Q``_bready)

`define AXI_READ_PORTS(P, DIMENSION=) \
    output logic DIMENSION [63:0]  P``_araddr, \
    output logic DIMENSION [7:0]   P``_arlen, \
    output logic DIMENSION         P``_arvalid, \
    input  logic DIMENSION         P``_arready, \
    input  logic DIMENSION [511:0] P``_rdata, \
    input  logic DIMENSION [1:0]   P``_rresp, \
    input  logic DIMENSION         P``_rlast, \
    input  logic DIMENSION         P``_rvalid, \
    output logic DIMENSION         P``_rready

`define AXI_READ_CONNECT(P, Q, SELECT=) \
    .P``_araddr(Q``_araddr SELECT), .P``_arlen(Q``_arlen SELECT), .P``_arvalid(Q``_arvalid SELECT), \
    .P``_arready(Q``_arready SELECT), .P``_rdata(Q``_rdata SELECT), .P``_rresp(Q``_rresp SELECT), \
    .P``_rlast(Q``_rlast SELECT), .P``_rvalid(Q``_rvalid SELECT), .P``_rready(Q``_rready SELECT)

// ---- AXI-Stream, 512 bits: vectors with tuser of a type; frames with tkeep; frames with a bit of tuser as well ---
`define AXIS_VECTOR_IN_PORTS(P, USER) \
    input  logic [511:0] P``_tdata, \
    input  logic         P``_tlast, \
    input  USER          P``_tuser, \
    input  logic         P``_tvalid, \
    output logic         P``_tready

`define AXIS_VECTOR_OUT_PORTS(P, USER) \
    output logic [511:0] P``_tdata, \
    output logic         P``_tlast, \
    output USER          P``_tuser, \
    output logic         P``_tvalid, \
    input  logic         P``_tready

// The signals between two modules.
`define AXIS_VECTOR_SIGNALS(P, USER) \
    logic [511:0] P``_tdata; \
    logic         P``_tlast; \
    USER          P``_tuser; \
    logic         P``_tvalid; \
    logic         P``_tready;

`define AXIS_VECTOR_CONNECT(P, Q) \
    .P``_tdata(Q``_tdata), .P``_tlast(Q``_tlast), .P``_tuser(Q``_tuser), .P``_tvalid(Q``_tvalid), .P``_tready(Q``_tready)

`define AXIS_KEEP_IN_PORTS(P) \
    input  logic [511:0] P``_tdata, \
    input  logic [63:0]  P``_tkeep, \
    input  logic         P``_tlast, \
    input  logic         P``_tvalid, \
    output logic         P``_tready

`define AXIS_KEEP_OUT_PORTS(P) \
    output logic [511:0] P``_tdata, \
    output logic [63:0]  P``_tkeep, \
    output logic         P``_tlast, \
    output logic         P``_tvalid, \
    input  logic         P``_tready

`define AXIS_KEEP_SIGNALS(P) \
    logic [511:0] P``_tdata; \
    logic [63:0]  P``_tkeep; \
    logic         P``_tlast; \
    logic         P``_tvalid; \
    logic         P``_tready;

`define AXIS_KEEP_CONNECT(P, Q) \
    .P``_tdata(Q``_tdata), .P``_tkeep(Q``_tkeep), .P``_tlast(Q``_tlast), .P``_tvalid(Q``_tvalid), .P``_tready(Q``_tready)

`define AXIS_FRAME_IN_PORTS(P) \
    `AXIS_KEEP_IN_PORTS(P), \
    input  logic         P``_tuser

`define AXIS_FRAME_OUT_PORTS(P) \
    `AXIS_KEEP_OUT_PORTS(P), \
    output logic         P``_tuser

`define AXIS_FRAME_CONNECT(P, Q) \
    `AXIS_KEEP_CONNECT(P, Q), .P``_tuser(Q``_tuser)

`endif

// Translates virtual to physical pages of 2 MiB; the driver fills it (LuWu, section 3.2.1: the GTLB of a WorkerNIC, the
// TLB of an AggNIC).  Direct-mapped: the low bits of the page number choose the entry, so the driver knows what
// a fill replaces.  A result comes two clocks after its lookup was taken; the ports take turns.
module tlb
  import hostif_pkg::*;
#(
    // number of entries, a power of two; 1024 reach 2 GiB
    parameter int unsigned ENTRIES = 1024,
    parameter int unsigned PORTS = 2
) (
    input  logic             clk,
    input  logic             rst,

    // one entry a clock; present = 0 takes a page out
    input  logic             fill_valid,
    output logic             fill_ready,  // low while a reset empties the entries
    input  vpn_t             fill_vpn,
    input  ppn_t             fill_ppn,
    input  logic             fill_present,

    input  logic [PORTS-1:0] lookup_valid,
    output logic [PORTS-1:0] lookup_ready,
    input  vpn_t             lookup_vpn[PORTS],
    output logic [PORTS-1:0] result_valid,
    output logic             result_hit,
    output ppn_t             result_ppn
);

  localparam int unsigned IndexBits = $clog2(ENTRIES);
  localparam int unsigned TagBits = VpnBits - IndexBits;

  if (ENTRIES < 2 || ENTRIES != 1 << IndexBits) begin : gen_bad_entries
    $fatal(1, "tlb: ENTRIES must be a power of two, at least 2");
  end

  typedef struct packed {
    logic               present;
    logic [TagBits-1:0] tag;
    ppn_t               ppn;
  } entry_t;

  (* ram_style = "block" *) logic [$bits(entry_t)-1:0] entries[ENTRIES];

  // ---- fill; a reset sweeps the entries ---------------------------------------------------------------
  logic                 sweeping_reg;
  logic [IndexBits-1:0] sweep_reg;
  logic [IndexBits-1:0] write_index;
  entry_t               write_entry;

  assign fill_ready = !sweeping_reg;

  always_comb begin
    write_index = fill_vpn[IndexBits-1:0];
    write_entry = '{present: fill_present, tag: fill_vpn[VpnBits-1:IndexBits], ppn: fill_ppn};
    if (sweeping_reg) begin
      write_index = sweep_reg;
      write_entry = '0;
    end
  end

  always_ff @(posedge clk) begin
    if (sweeping_reg || fill_valid) entries[write_index] <= write_entry;
    if (rst) begin
      sweeping_reg <= 1'b1;
      sweep_reg    <= '0;
    end else if (sweeping_reg) begin
      sweep_reg <= sweep_reg + 1'b1;
      if (&sweep_reg) sweeping_reg <= 1'b0;
    end
  end

  // ---- lookup -----------------------------------------------------------------------------------------
  logic [PORTS-1:0] grant;
  vpn_t             vpn;
  logic [TagBits-1:0] tag_reg;
  logic [PORTS-1:0] asked_reg;
  entry_t           read_reg;

  arbiter_rr #(.COUNT(PORTS)) turns (
      .clk,
      .rst,
      .request(sweeping_reg ? '0 : lookup_valid),
      .done(1'b1),
      .grant,
      .index(),
      .granted()
  );

  always_comb begin
    vpn = '0;
    for (int unsigned i = 0; i < PORTS; i++) begin
      if (grant[i]) vpn |= lookup_vpn[i];
    end
  end

  assign lookup_ready = grant;

  always_ff @(posedge clk) begin
    read_reg     <= entry_t'(entries[vpn[IndexBits-1:0]]);
    tag_reg      <= vpn[VpnBits-1:IndexBits];
    result_hit   <= read_reg.present && read_reg.tag == tag_reg;
    result_ppn   <= read_reg.ppn;
    if (rst) begin
      asked_reg    <= '0;
      result_valid <= '0;
    end else begin
      asked_reg    <= grant;
      result_valid <= asked_reg;
    end
  end

endmodule : tlb

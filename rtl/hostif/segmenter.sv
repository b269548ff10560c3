// The memory access controller's first half: looks at a request, translates it, and cuts it into segments that lie in one
// 4 KiB block each.  A request that is refused, or whose pages are not all in the TLB, moves nothing: only its job comes
// out, with the reason.  A request whose completion has no page cannot be answered; it is dropped and reported.
module segmenter
  import catchment_wire_pkg::*;
  import hostif_pkg::*;
(
    input  logic      clk,
    input  logic      rst,

    // which element types this direction carries, by their number
    input  type_set_t types,
    // which of them may be block-scaled now
    input  type_set_t block_types,

    input  request_t  s_request,
    input  logic      s_request_valid,
    output logic      s_request_ready,

    // one for every request, in order, before its segments
    output job_t      m_job,
    output logic      m_job_valid,
    input  logic      m_job_ready,

    output segment_t  m_segment,
    output logic      m_segment_valid,
    input  logic      m_segment_ready,

    output logic      lookup_valid,
    input  logic      lookup_ready,
    output vpn_t      lookup_vpn,
    input  logic      result_valid,
    input  logic      result_hit,
    input  ppn_t      result_ppn,
    // high for a clock: an entry of the TLB has changed
    input  logic      filled,

    // high for a clock: a page was not in the TLB; beside it, which page
    output logic        missed,
    output logic [63:0] missed_address,
    // high for a clock: a request was dropped, since its completion has no place
    output logic        unanswerable
);

  typedef enum logic [2:0] {
    IDLE,
    COMPLETION,  // look up the completion's page
    PAGES,       // look up every page of the buffer
    JOB,
    SEGMENT,     // make the next one
    SEND
  } state_t;

  state_t                  state_reg;
  request_t                request_reg;
  status_t                 status_reg;
  physical_t               completion_reg;
  logic [VirtualBits-1:0]  at_reg;         // address of the next byte of the buffer
  logic [31:0]             left_reg;       // bytes left from that address on
  vpn_t                    last_page_reg;  // the last page of the buffer
  logic                    buffer_void_reg;  // its last byte lies beyond the virtual addresses
  segment_t                segment_reg;

  // ---- two translations are kept, the completions' page and the buffer's --------------------------------
  logic kept_reg    [2];
  vpn_t kept_vpn_reg[2];
  ppn_t kept_ppn_reg[2];
  logic asked_reg;
  logic stale_reg;  // an entry changed while a lookup was under way

  vpn_t wanted;
  logic wants;
  logic have;

  wire completes = state_reg == COMPLETION;
  // Nothing is asked for an address that cannot be: the request is over before the answer, which would be the next one's.
  wire completion_void = |request_reg.cmpt_ptr[63:VirtualBits] || |request_reg.cmpt_ptr[4:0];
  wire [64:0] end_address = {1'b0, request_reg.vaddr} + {33'd0, request_reg.len} - 65'd1;
  wire unused = &{1'b0, end_address[PageShift-1:0]};

  assign wanted = completes ? request_reg.cmpt_ptr[VirtualBits-1:PageShift] : at_reg[VirtualBits-1:PageShift];
  assign wants  = (completes && !completion_void) || (state_reg == PAGES && !buffer_void_reg) || state_reg == SEGMENT;
  assign have   = kept_reg[completes] && kept_vpn_reg[completes] == wanted;

  assign lookup_valid = wants && !have && !asked_reg;
  assign lookup_vpn   = wanted;

  wire absent = wants && result_valid && !result_hit;

  always_ff @(posedge clk) begin
    if (result_valid) begin
      kept_vpn_reg[completes] <= wanted;
      kept_ppn_reg[completes] <= result_ppn;
    end
    if (lookup_valid && lookup_ready) stale_reg <= filled;
    else if (filled) stale_reg <= 1'b1;
    if (rst) begin
      kept_reg  <= '{default: 1'b0};
      asked_reg <= 1'b0;
    end else begin
      if (lookup_valid && lookup_ready) asked_reg <= 1'b1;
      if (result_valid) asked_reg <= 1'b0;
      if (result_valid) kept_reg[completes] <= result_hit && !stale_reg;
      if (filled) kept_reg <= '{default: 1'b0};
    end
  end

  // ---- what is wrong with a request -------------------------------------------------------------------
  function automatic status_t judge(data_type_t dtype, logic block, logic [31:0] len, logic [5:0] low_address);
    if (dtype > DATA_TYPE_BF16 || !types[dtype[2:0]]) return STATUS_BAD_TYPE;
    if (block && !block_types[dtype[2:0]]) return STATUS_BAD_SCALING;
    if (len == 0 || |(len[1:0] & ((2'd1 << element_shift(dtype)) - 2'd1))) return STATUS_BAD_LENGTH;
    if (low_address != 0) return STATUS_BAD_ALIGNMENT;
    return STATUS_OK;
  endfunction

  // ---- the segment at at_reg --------------------------------------------------------------------------
  logic [SegmentBytesBits-1:0] to_boundary;
  logic                        final_segment;
  logic [SegmentBytesBits-1:0] segment_bytes;

  assign to_boundary   = SegmentBytesBits'(AxiBoundaryBytes) - {1'b0, at_reg[11:0]};
  assign final_segment = left_reg <= {19'd0, to_boundary};
  assign segment_bytes = final_segment ? left_reg[SegmentBytesBits-1:0] : to_boundary;

  assign s_request_ready = state_reg == IDLE;
  assign m_job_valid     = state_reg == JOB;
  assign m_segment_valid = state_reg == SEND;
  assign m_segment       = segment_reg;

  always_comb begin
    m_job = '{
        status: status_reg,
        completion: completion_reg,
        len: request_reg.len,
        dtype: request_reg.dtype,
        exponent: request_reg.exponent,
        block: request_reg.block,
        tag: request_reg.tag,
        started: request_reg.started
    };
  end

  always_ff @(posedge clk) begin
    missed       <= 1'b0;
    unanswerable <= 1'b0;
    unique case (state_reg)
      IDLE: begin
        if (s_request_valid) begin
          request_reg <= s_request;
          status_reg  <= judge(s_request.dtype, s_request.block, s_request.len, s_request.vaddr[5:0]);
          state_reg   <= COMPLETION;
        end
      end

      COMPLETION: begin
        at_reg          <= request_reg.vaddr[VirtualBits-1:0];
        left_reg        <= request_reg.len;
        last_page_reg   <= end_address[VirtualBits-1:PageShift];
        buffer_void_reg <= |end_address[64:VirtualBits];
        completion_reg  <= {kept_ppn_reg[1], request_reg.cmpt_ptr[PageShift-1:0]};
        missed_address  <= request_reg.cmpt_ptr;
        if (completion_void || absent) begin
          missed       <= 1'b1;
          unanswerable <= 1'b1;
          state_reg    <= IDLE;
        end else if (have) begin
          state_reg <= status_reg == STATUS_OK ? PAGES : JOB;
        end
      end

      PAGES: begin
        missed_address <= {{(64 - VirtualBits) {1'b0}}, at_reg};
        if (buffer_void_reg || absent) begin
          missed     <= 1'b1;
          status_reg <= STATUS_UNMAPPED;
          state_reg  <= JOB;
          if (buffer_void_reg) missed_address <= request_reg.vaddr;
        end else if (have) begin
          if (at_reg[VirtualBits-1:PageShift] == last_page_reg) begin
            at_reg    <= request_reg.vaddr[VirtualBits-1:0];
            state_reg <= JOB;
          end else begin
            at_reg <= {at_reg[VirtualBits-1:PageShift] + 1'b1, {PageShift{1'b0}}};
          end
        end
      end

      JOB: if (m_job_ready) state_reg <= status_reg == STATUS_OK ? SEGMENT : IDLE;

      SEGMENT: begin
        missed_address <= {{(64 - VirtualBits) {1'b0}}, at_reg};
        segment_reg    <= '{
            address: {kept_ppn_reg[0], at_reg[PageShift-1:0]},
            bytes: segment_bytes,
            last: final_segment,
            unmapped: absent
        };
        if (have || absent) begin
          missed    <= absent;
          at_reg    <= at_reg + VirtualBits'(segment_bytes);
          left_reg  <= left_reg - {19'd0, segment_bytes};
          state_reg <= SEND;
        end
      end

      SEND: if (m_segment_ready) state_reg <= segment_reg.last ? IDLE : SEGMENT;

      default: state_reg <= IDLE;
    endcase
    if (rst) begin
      state_reg    <= IDLE;
      missed       <= 1'b0;
      unanswerable <= 1'b0;
    end
  end

endmodule : segmenter

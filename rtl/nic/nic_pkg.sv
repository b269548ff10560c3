// The counters of a NIC beside its transport's (transport_pkg::stat_t), by index; each has 48 bits.
package nic_pkg;

  localparam int unsigned HostStatIndexBits = 6;
  // bits of register IRQ
  localparam int unsigned InterruptBits = 6;

  typedef enum logic [HostStatIndexBits-1:0] {
    HOST_STAT_STATUS                = 6'd0,   // 16 of them: HOST_STAT_STATUS + status_t, requests that ended so
    HOST_STAT_PUSHES                = 6'd16,  // pushes that ended
    HOST_STAT_PULLS                 = 6'd17,
    HOST_STAT_PUSH_REFUSED          = 6'd18,  // the queue was full
    HOST_STAT_PULL_REFUSED          = 6'd19,
    HOST_STAT_PUSH_MISSES           = 6'd20,  // a page was not in the TLB
    HOST_STAT_PULL_MISSES           = 6'd21,
    HOST_STAT_PUSH_UNANSWERABLE     = 6'd22,  // no page for the completion: dropped
    HOST_STAT_PULL_UNANSWERABLE     = 6'd23,
    HOST_STAT_BUS_ERRORS            = 6'd24,  // beats or bursts that memory refused
    HOST_STAT_RECORDS_LOST          = 6'd25,  // completion records among them
    HOST_STAT_PUSH_MEMORY_CLOCKS    = 6'd26,  // stall: a push waits for memory
    HOST_STAT_PUSH_TRANSPORT_CLOCKS = 6'd27,  // stall: a push waits for the transport
    HOST_STAT_PULL_WAIT_CLOCKS      = 6'd28,  // stall: a pull waits for its message
    HOST_STAT_VECTOR_WAIT_CLOCKS    = 6'd29,  // stall: a vector waits for a pull
    HOST_STAT_PULL_MEMORY_CLOCKS    = 6'd30,  // stall: a pull waits for memory
    HOST_STAT_REGISTER_ERRORS       = 6'd31,  // reads and writes that were answered with an error
    HOST_STAT_PUSH_BYTES            = 6'd32,
    HOST_STAT_PUSH_LATENCY_SUM      = 6'd33,  // clocks from request to completion
    HOST_STAT_SATURATED             = 6'd34,  // values cut, the non-finite included
    HOST_STAT_NONFINITE             = 6'd35,
    HOST_STAT_PULL_BYTES            = 6'd36,
    HOST_STAT_PULL_LATENCY_SUM      = 6'd37,
    HOST_STAT_PUSH_LATENCY_MIN      = 6'd40,  // all ones before the first push
    HOST_STAT_PULL_LATENCY_MIN      = 6'd41,
    HOST_STAT_PUSH_LATENCY_MAX      = 6'd42,
    HOST_STAT_PULL_LATENCY_MAX      = 6'd43
  } host_stat_t;

endpackage : nic_pkg

// Parameters that a NIC hands down to its parts, each with its default written once: PARAMETERS macros stand in a module's
// list of parameters, PASS macros in an instance's.  Neither begins nor ends with a comma.
`ifndef CATCHMENT_PARAMETERS_SVH
`define CATCHMENT_PARAMETERS_SVH

// ---- of host_access and what contains it ---------------------------------------------------------------------
// QUEUE_DEPTH  number of requests that may wait in each direction, a power of two, 2..128
// TLB_ENTRIES  number of 2 MiB pages in the TLB, a power of two
// READ_BEATS   number of beats asked of memory at a time, a power of two: bandwidth times latency
// WRITE_BEATS  number of beats that may wait for memory, a power of two
// BURST_BEATS  number of beats of the longest burst, a power of two, at most 64
`define ACCESS_PARAMETERS \
    parameter int unsigned QUEUE_DEPTH = 16, \
    parameter int unsigned TLB_ENTRIES = 1024, \
    parameter int unsigned READ_BEATS = 512, \
    parameter int unsigned WRITE_BEATS = 64, \
    parameter int unsigned BURST_BEATS = 16

`define ACCESS_PASS \
    .QUEUE_DEPTH(QUEUE_DEPTH), .TLB_ENTRIES(TLB_ENTRIES), .READ_BEATS(READ_BEATS), .WRITE_BEATS(WRITE_BEATS), \
    .BURST_BEATS(BURST_BEATS)

// ---- of host_datapath and what contains it -------------------------------------------------------------------
// VECTOR_BYTES  bytes of a vector, a power of two, 64..8192
// BLOCK_BEATS   number of beats that the buffer for block scaling holds, a power of two: slots T of less than that many vectors
// STAGES        number of registers in a converter's lane, 1..3
`define DATAPATH_PARAMETERS \
    parameter int unsigned VECTOR_BYTES = 256, \
    parameter int unsigned BLOCK_BEATS = 4096, \
    parameter int unsigned STAGES = 3, \
    `ACCESS_PARAMETERS

`define DATAPATH_PASS \
    .VECTOR_BYTES(VECTOR_BYTES), .BLOCK_BEATS(BLOCK_BEATS), .STAGES(STAGES), `ACCESS_PASS

// ---- of nic_shell and nic ------------------------------------------------------------------------------------
// ROLE        a role_t; a plain bit, since Yosys gives an enumeration no value from outside.  A root pushes bytes and pulls
//             sums; a worker pushes gradients and pulls bytes, or sums in all-reduce
// WINDOW      number of frames in each ring of the transport, a power of two
// ALL_REDUCE  0: a worker is never in all-reduce; leaves out the conversion back
// TAG_UNITS   number of frames each way whose tags are computed at a time, 1..16; 0: the NIC has no tags
`define NIC_PARAMETERS \
    parameter bit ROLE = ROLE_WORKER, \
    parameter int unsigned WINDOW = 1024, \
    parameter bit ALL_REDUCE = 1'b1, \
    parameter int unsigned TAG_UNITS = 0, \
    `DATAPATH_PARAMETERS

`define NIC_PASS \
    .ROLE(ROLE), .WINDOW(WINDOW), .ALL_REDUCE(ALL_REDUCE), .TAG_UNITS(TAG_UNITS), `DATAPATH_PASS

`endif

// Types that pass between the controls.
#ifndef CATCHMENT_TYPES_P4
#define CATCHMENT_TYPES_P4

typedef bit<9> port_t;
typedef bit<48> mac_t;
typedef bit<32> ip_t;
typedef bit<32> seq_t;
#if MAX_WORKERS > 32
typedef bit<64> worker_bits_t;
#else
typedef bit<32> worker_bits_t;
#endif

// newer(a, b): 0 < a - b mod 2^32 < 2^31, in one comparison.
#define NEWER(a, b) (((b) - (a)) > 32w0x80000000)

// Bytes behind the payload, and the versions that the program takes.
#ifdef TAGS
#define TAIL_BYTES(hdr) (hdr.catchment.version == CATCHMENT_TAGGED_VERSION ? CATCHMENT_TAG_BYTES : 16w0)
#define IS_SPOKEN(version) ((version) == CATCHMENT_VERSION || (version) == CATCHMENT_TAGGED_VERSION)
#else
#define TAIL_BYTES(hdr) 16w0
#define IS_SPOKEN(version) ((version) == CATCHMENT_VERSION)
#endif

// How a frame leaves, as ingress says to egress.
enum bit<2> Route {
    PLAIN = 0,   // layer 2 traffic, unchanged
    ANSWER = 1,  // an ARP reply of the switch itself
    JOB = 2      // a job's frame: egress writes the receiver's addresses
}

// What a job's frame asks of the switch.
enum bit<2> Path {
    AGGREGATE = 0,  // add a vector to its slot
    HEARTBEAT = 1,  // merge an ack and a credit
    RELAY = 2       // from the root or the parent: to all workers, no state
}

// What came of it.
enum bit<3> Event {
    ABSORBED = 0,  // taken in; nothing leaves
    FULL = 1,      // the slot holds every worker's vector
    MERGED = 2,    // a merged heartbeat is due
    RELAYED = 3,   // the frame itself goes on
    CONFIRMED = 4  // an acknowledgement of a round that is over
}

enum bit<2> SlotState {
    FRESH = 0,  // this packet opens the slot
    SAME = 1,   // the slot holds this sequence number
    OLD = 2,    // the slot has gone on
    BEYOND = 3  // this packet is further ahead than anybody may be
}

// The row of table `jobs` that admitted the frame.
struct job_t {
    bit<1> from_root;     // the port leads to the root or to the parent switch
    Mode mode;
    bit<8> wid;           // worker on this port; 0 for the root
    worker_bits_t own;    // its bit
    worker_bits_t full;   // every worker's bit
    bit<32> base;         // first slot
    bit<32> mask;         // slots - 1
    bit<16> index;        // row in the per-job registers
    bit<16> group;        // multicast group of the workers
    port_t up_port;       // towards the root or the parent
    bit<8> up_wid;        // LEAF: this switch's worker index at its parent
    ip_t src_ip;          // the address that the frame must come from
    bit<16> src_udp;
}

// One access to a slot.  Lanes become (old & keep) + (packet & take), where no carry leaves a bit of `tops`.
struct slot_t {
    bit<32> index;
    SlotState state;
    bit<1> bounded;       // `furthest` is known
    seq_t furthest;       // the last sequence number that a sender may be at
    bit<1> again;         // this worker's vector is already in
    bit<1> full;
    bit<32> keep;
    bit<32> take;
    bit<32> tops;         // packed lanes: the top bits of both halves; else 0
}

// One access to the heartbeat table.
struct heartbeat_t {
    bit<32> index;
    bit<16> gen;
    worker_bits_t sender;   // whose entry to update; 0 for none
    worker_bits_t members;  // whose entries make up the minimum
    seq_t ack;              // what the sender says
    seq_t credit;
    bit<1> started;         // the minima hold at least one entry
    bit<1> complete;        // every member has spoken in this generation
    seq_t min_ack;
    seq_t min_credit;
}

struct metadata_t {
    DropReason drop;
    Route route;
    Path path;
    Event event;
    PacketType packet_type;  // NONE (0) for plain traffic; what the fault tables match
    bit<1> merge;            // the frame's ack and credit join the heartbeat table
    bit<1> own_address;      // the frame is for the switch itself
    mac_t own_mac;
    ip_t target_ip;
    job_t job;
    slot_t slot;
    heartbeat_t hb;
#ifdef TAGS
    bit<64> k0;              // the key of the stream, where it has one
    bit<64> k1;
    bit<64> odd_k0;          // of the numbers with a 1 in term_bit; as k0 and k1 unless the key has been renewed
    bit<64> odd_k1;
    seq_t term_bit;          // that tells terms apart; 0: one key for all numbers
#endif
}

#endif  // CATCHMENT_TYPES_P4

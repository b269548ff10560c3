// How far ahead a vector may be: less than a window (the stream's slots) beyond what every receiver has.  No sender that
// follows the protocol is further; a vector from beyond would take a slot that the job needs for earlier ones.
#ifndef CATCHMENT_WINDOW_P4
#define CATCHMENT_WINDOW_P4

// What the root or the parent has said that every receiver has: gen ++ ack, by job.  Nothing is known after a restart.
control Window(in bit<1> from_above, in bit<16> gen, in seq_t ack, in bit<32> mask, inout slot_t slot,
               in bit<16> job) {
    register<bit<48>>(JOBS) acked;

    apply {
        bit<48> held;
        acked.read(held, (bit<32>)job);
        if (from_above == 1) {
            if (held[47:32] != gen || NEWER(ack, held[31:0])) {
                acked.write((bit<32>)job, gen ++ ack);
            }
        } else if (held[47:32] == gen) {
            slot.bounded = 1;
            slot.furthest = held[31:0] + mask;
        }
    }
}

#endif  // CATCHMENT_WINDOW_P4

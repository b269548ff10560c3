// How far ahead a vector may be: less than a window (the stream's slots) beyond what every receiver has.  No sender that
// follows the protocol is further, and who is would take slots that the job needs next.
#ifndef CATCHMENT_WINDOW_P4
#define CATCHMENT_WINDOW_P4

control Window(in headers_t hdr, inout metadata_t meta) {
    // gen ++ ack, by job: the largest ack that came from the root or the parent.  Nothing is known after a restart.
    register<bit<48>>(JOBS) acked;

    apply {
        bit<48> held;
        bit<1> known = meta.hb.complete;
        seq_t least = meta.hb.min_ack;
        if (meta.path == Path.RELAY) {
            if ((hdr.catchment.flags & FLAG_ACKV) != 0 && hdr.catchment.type != PacketType.PARAM) {
                acked.read(held, (bit<32>)meta.job.index);
                if (held[47:32] != hdr.catchment.gen || NEWER(hdr.catchment.ack, held[31:0])) {
                    acked.write((bit<32>)meta.job.index, hdr.catchment.gen ++ hdr.catchment.ack);
                }
            }
        } else {
            if (meta.job.mode != Mode.ALLREDUCE) {
                acked.read(held, (bit<32>)meta.job.index);
                known = 0;
                if (held[47:32] == hdr.catchment.gen) {
                    known = 1;
                }
                least = held[31:0];
            }
            if (known == 1 && NEWER(hdr.catchment.seq, least + meta.job.mask)) {
                meta.drop = DropReason.BEYOND_WINDOW;
            }
        }
    }
}

#endif  // CATCHMENT_WINDOW_P4

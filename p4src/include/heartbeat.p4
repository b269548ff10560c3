// What every member has said of its window, and the minimum over all of them.
#ifndef CATCHMENT_HEARTBEAT_P4
#define CATCHMENT_HEARTBEAT_P4

// The entries of one worker index, one row a job: gen ++ ack ++ credit.
control WorkerHeartbeat(in worker_bits_t worker, inout heartbeat_t hb) {
    register<bit<80>>(JOBS) heartbeat;

    apply {
        bit<80> held;
        // Once a member has not spoken there is no minimum, and the others are not looked at.
        if ((hb.members & worker) != 0 && (hb.complete == 1 || hb.sender == worker)) {
            heartbeat.read(held, hb.index);
            if (hb.sender == worker) {
                if (held[79:64] != hb.gen) {
                    held = hb.gen ++ hb.ack ++ hb.credit;
                }
                if (NEWER(hb.ack, held[63:32])) {
                    held[63:32] = hb.ack;
                }
                if (NEWER(hb.credit, held[31:0])) {
                    held[31:0] = hb.credit;
                }
                heartbeat.write(hb.index, held);
            }
            if (held[79:64] != hb.gen) {
                hb.complete = 0;
            }
            if (hb.started == 0 || NEWER(hb.min_ack, held[63:32])) {
                hb.min_ack = held[63:32];
            }
            if (hb.started == 0 || NEWER(hb.min_credit, held[31:0])) {
                hb.min_credit = held[31:0];
            }
            hb.started = 1;
        }
    }
}

// Asks for a merged heartbeat when the minimum moved, whenever worker 0 speaks, so that a lost one is repeated, and
// when a receiver names a frame that the root should send again.  A peer of an all-reduce sets RETX to tell the others
// where it is: that goes to all members even while some are silent, so that waiting members learn which one is missing.
control LastHeartbeat(in headers_t hdr, inout metadata_t meta) {
    register<bit<80>>(JOBS) last;

    apply {
        bit<80> held;
        last.read(held, meta.hb.index);
        if (meta.hb.complete == 1) {
            if (held[79:64] != meta.hb.gen || NEWER(meta.hb.min_ack, held[63:32])
                || NEWER(meta.hb.min_credit, held[31:0])) {
                last.write(meta.hb.index, meta.hb.gen ++ meta.hb.min_ack ++ meta.hb.min_credit);
                meta.event = Event.MERGED;
            } else if (meta.job.wid == 0
                       || (hdr.catchment.flags & FLAG_RETX) != 0) {
                meta.event = Event.MERGED;
            }
        } else if (meta.job.mode == Mode.ALLREDUCE && (hdr.catchment.flags & FLAG_RETX) != 0) {
            meta.event = Event.MERGED;
        }
    }
}

#endif  // CATCHMENT_HEARTBEAT_P4

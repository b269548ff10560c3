// The stateful part.  The order heartbeats -> last, window -> tag -> bitmap -> values has no cycle: one pass does it.
#ifndef CATCHMENT_AGGREGATION_P4
#define CATCHMENT_AGGREGATION_P4

control Aggregation(inout headers_t hdr, inout metadata_t meta) {
    Heartbeats() heartbeats;
    LastHeartbeat() last_heartbeat;
    Window() window;
    SlotTag() slot_tag;
    SlotWorkers() slot_workers;
    SlotCombine() slot_combine;
    SlotNextExponent() slot_next_exponent;
    SlotFlags() slot_flags;
    Lanes() lanes;

    apply {
        if (meta.merge == 1) {
            meta.hb.index = (bit<32>)meta.job.index;
            meta.hb.gen = hdr.catchment.gen;
            meta.hb.members = meta.job.full;
            meta.hb.ack = hdr.catchment.ack;
            meta.hb.credit = hdr.catchment.credit;
            meta.hb.complete = 1;
            meta.hb.started = 0;
            meta.hb.sender = 0;
            if ((hdr.catchment.flags & FLAG_ACKV) != 0) {
                meta.hb.sender = meta.job.own;
            }
            heartbeats.apply(meta.hb);
        }
        if (meta.path == Path.HEARTBEAT) {
            last_heartbeat.apply(hdr, meta);
        } else if (meta.path == Path.AGGREGATE) {
            slot_tag.apply(hdr.catchment.gen, hdr.catchment.seq, false, meta.slot);
            // Most vectors find their slot taken by their own number, and need no bound.  A target with one access to an
            // array reads the bound first and claims at once: what comes out is the same.
            if (meta.slot.state != SlotState.SAME) {
                if (meta.job.mode == Mode.ALLREDUCE) {
                    meta.slot.bounded = meta.hb.complete;
                    meta.slot.furthest = meta.hb.min_ack + meta.job.mask;
                } else {
                    window.apply(0, hdr.catchment.gen, 0, meta.job.mask, meta.slot, meta.job.index);
                }
                slot_tag.apply(hdr.catchment.gen, hdr.catchment.seq, true, meta.slot);
            }
            if (meta.slot.state == SlotState.OLD) {
                meta.drop = DropReason.OLD_SEQ;
            } else if (meta.slot.state == SlotState.BEYOND) {
                meta.drop = DropReason.BEYOND_WINDOW;
            } else {
                slot_workers.apply(meta.job.own, meta.job.full, meta.slot);
                slot_combine.apply(meta.slot);
                if (meta.slot.again == 0 || meta.slot.full == 1) {
                    slot_next_exponent.apply(hdr, meta.slot);
                    slot_flags.apply(hdr, meta.slot);
                    lanes.apply(hdr.lanes, meta.slot);
                }
                if (meta.slot.full == 1) {
                    meta.event = Event.FULL;
                }
            }
        } else if ((hdr.catchment.flags & FLAG_ACKV) != 0 && hdr.catchment.type != PacketType.PARAM) {
            window.apply(1, hdr.catchment.gen, hdr.catchment.ack, 0, meta.slot, meta.job.index);
        }
    }
}

#endif  // CATCHMENT_AGGREGATION_P4

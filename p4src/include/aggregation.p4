// The stateful part.  The order heartbeats -> last and tag -> bitmap -> values has no cycle: one pass does it.
#ifndef CATCHMENT_AGGREGATION_P4
#define CATCHMENT_AGGREGATION_P4

control Aggregation(inout headers_t hdr, inout metadata_t meta) {
    Heartbeats() heartbeats;
    LastHeartbeat() last_heartbeat;
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
            slot_tag.apply(hdr.catchment.gen, hdr.catchment.seq, true, meta.slot);
            if (meta.slot.state == SlotState.OLD) {
                meta.drop = DropReason.OLD_SEQ;
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
        }
    }
}

#endif  // CATCHMENT_AGGREGATION_P4

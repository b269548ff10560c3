// The stateful part of p4sgd.p4: a slot's sum, and which workers have it.  Two (tag, bitmap) pairs; the order
// heartbeats -> tag -> bitmap -> values and tag -> ack tag -> ack bitmap has no cycle: one pass does it.
#ifndef CATCHMENT_ROUNDS_P4
#define CATCHMENT_ROUNDS_P4

control Rounds(inout headers_t hdr, inout metadata_t meta) {
    Heartbeats() heartbeats;
    SlotTag() slot_tag;
    SlotWorkers() slot_workers;
    SlotCombine() slot_combine;
    SlotNextExponent() slot_next_exponent;
    SlotFlags() slot_flags;
    Lanes() lanes;
    SlotTag() ack_tag;
    SlotWorkers() ack_workers;

    apply {
        // A round begins when the one before it in its slot was confirmed: each worker then has that sum, and has said so.
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
        meta.slot.bounded = meta.hb.complete;
        meta.slot.furthest = meta.hb.min_ack + meta.job.mask;
        slot_tag.apply(hdr.catchment.gen, hdr.catchment.seq, hdr.catchment.type == PacketType.PA, meta.slot);
        if (hdr.catchment.type == PacketType.PA) {
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
            }
        } else if (meta.slot.state == SlotState.BEYOND) {
            meta.drop = DropReason.BEYOND_WINDOW;
        } else if (meta.slot.state == SlotState.OLD) {
            // The next round has begun, and it begins only after this one was confirmed: the sender has missed that.  While
            // some worker has not said what it lacks, the slot may hold a round that no worker is at.
            if (meta.slot.bounded == 1 || meta.hb.sender == 0) {
                meta.event = Event.CONFIRMED;
            } else {
                meta.drop = DropReason.OLD_SEQ;
            }
        } else {
            ack_tag.apply(hdr.catchment.gen, hdr.catchment.seq, true, meta.slot);
            if (meta.slot.state == SlotState.OLD) {
                meta.drop = DropReason.OLD_SEQ;
            } else if (meta.slot.state == SlotState.BEYOND) {
                meta.drop = DropReason.BEYOND_WINDOW;
            } else {
                ack_workers.apply(meta.job.own, meta.job.full, meta.slot);
            }
        }
        if (meta.slot.full == 1) {
            meta.event = Event.FULL;
        }
    }
}

#endif  // CATCHMENT_ROUNDS_P4

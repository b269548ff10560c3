// The stateful part of p4sgd.p4: a slot's sum, and which workers have it.  Two (tag, bitmap) pairs; the order
// tag -> bitmap -> values and tag -> ack tag -> ack bitmap has no cycle: one pass does it.
#ifndef CATCHMENT_ROUNDS_P4
#define CATCHMENT_ROUNDS_P4

control Rounds(inout headers_t hdr, inout metadata_t meta) {
    SlotTag() slot_tag;
    SlotWorkers() slot_workers;
    SlotCombine() slot_combine;
    SlotNextExponent() slot_next_exponent;
    SlotFlags() slot_flags;
    Lanes() lanes;
    SlotTag() ack_tag;
    SlotWorkers() ack_workers;

    apply {
        slot_tag.apply(hdr.catchment.gen, hdr.catchment.seq, hdr.catchment.type == PacketType.PA, meta.slot);
        if (hdr.catchment.type == PacketType.PA) {
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
            }
        } else if (meta.slot.state == SlotState.OLD) {
            // The next round has begun, and it begins only after this one was confirmed: the sender has missed that.
            meta.event = Event.CONFIRMED;
        } else {
            ack_tag.apply(hdr.catchment.gen, hdr.catchment.seq, true, meta.slot);
            if (meta.slot.state == SlotState.OLD) {
                meta.drop = DropReason.OLD_SEQ;
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

// Which round a slot belongs to and which members are in it.  One read-modify-write of one array in each control: on Tofino
// each becomes a RegisterAction.
#ifndef CATCHMENT_SLOT_P4
#define CATCHMENT_SLOT_P4

// gen ++ seq of the round that a slot holds.  Zero is no round: gen 0 is invalid.  Without `claim` the slot is only asked.
// What is beyond a bound, where one is known, takes no slot, and gives back what it took before.
control SlotTag(in bit<16> gen, in seq_t seq, in bool claim, inout slot_t slot) {
    register<bit<48>>(SLOTS) tag;

    apply {
        bit<48> held;
        tag.read(held, slot.index);
        if (held == gen ++ seq) {
            slot.state = SlotState.SAME;
        } else if (slot.bounded == 1 && NEWER(seq, slot.furthest)) {
            slot.state = SlotState.BEYOND;
        } else if (held[47:32] != gen || NEWER(seq, held[31:0])
                   || (slot.bounded == 1 && NEWER(held[31:0], slot.furthest))) {
            slot.state = SlotState.FRESH;
            if (claim) {
                tag.write(slot.index, gen ++ seq);
            }
        } else {
            slot.state = SlotState.OLD;
        }
    }
}

// The workers whose vectors are in the slot.
control SlotWorkers(in worker_bits_t own, in worker_bits_t all, inout slot_t slot) {
    register<worker_bits_t>(SLOTS) bitmap;

    apply {
        worker_bits_t held;
        bitmap.read(held, slot.index);
        if (slot.state == SlotState.FRESH) {
            held = 0;
        }
        slot.again = 0;
        slot.full = 0;
        if ((held & own) != 0) {
            slot.again = 1;
        }
        held = held | own;
        if (held == all) {
            slot.full = 1;
        }
        bitmap.write(slot.index, held);
    }
}

// How the values of the packet and of the slot combine.
control SlotCombine(inout slot_t slot) {
    apply {
        slot.keep = 32w0xffffffff;
        slot.take = 32w0xffffffff;
        if (slot.state == SlotState.FRESH) {
            slot.keep = 0;
        } else if (slot.again == 1) {
            slot.take = 0;
        }
    }
}

#endif  // CATCHMENT_SLOT_P4

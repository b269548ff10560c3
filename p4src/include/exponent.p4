// What a slot keeps of the headers: the largest next exponent, and flags.
#ifndef CATCHMENT_EXPONENT_P4
#define CATCHMENT_EXPONENT_P4

// Signed maximum.  With the sign bit turned over it is an unsigned one, which every target has.
control SlotNextExponent(inout headers_t hdr, in slot_t slot) {
    register<bit<8>>(SLOTS) next_exp;

    apply {
        bit<8> held;
        bit<8> mine = (bit<8>)hdr.catchment.next_exp;
        next_exp.read(held, slot.index);
        if (slot.keep == 0 || (slot.take != 0 && (mine ^ 8w0x80) > (held ^ 8w0x80))) {
            held = mine;
        }
        next_exp.write(slot.index, held);
        hdr.catchment.next_exp = (int<8>)held;
    }
}

const bit<8> MERGED = FLAG_SAT | FLAG_EXPV | FLAG_PACKED | FLAG_MIXED;

// SAT and PACKED are set if any worker set them; EXPV only if all did, since a maximum that leaves a worker out is none;
// MIXED if some have set PACKED and others have not.  Kept as what OR merges: SAT, PACKED, the complement of EXPV, and in
// the place of MIXED, the bit above PACKED, that some worker's lanes are not packed.
control SlotFlags(inout headers_t hdr, in slot_t slot) {
    register<bit<8>>(SLOTS) slot_flags;

    apply {
        bit<8> held;
        bit<8> mine = ((hdr.catchment.flags ^ FLAG_EXPV) & MERGED) | ((~hdr.catchment.flags & FLAG_PACKED) << 1);
        slot_flags.read(held, slot.index);
        held = (held & slot.keep[7:0]) | (mine & slot.take[7:0]);
        slot_flags.write(slot.index, held);
        hdr.catchment.flags = (hdr.catchment.flags & ~MERGED) | ((held ^ FLAG_EXPV) & ((held << 1) | ~FLAG_MIXED));
    }
}

#endif  // CATCHMENT_EXPONENT_P4

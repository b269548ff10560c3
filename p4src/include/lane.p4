// One lane of every slot.  Set, add and read are one expression: see `slot_t`.  The bits in `tops` are added without
// their carry, so that none leaves the integer that each of them is the top of.
#ifndef CATCHMENT_LANE_P4
#define CATCHMENT_LANE_P4

control Lane(inout bit<32> value, in slot_t slot) {
    register<bit<32>>(SLOTS) sum;

    apply {
        bit<32> held;
        sum.read(held, slot.index);
        held = held & slot.keep;
        value = value & slot.take;
        value = ((held & ~slot.tops) + (value & ~slot.tops)) ^ ((held ^ value) & slot.tops);
        sum.write(slot.index, value);
    }
}

#endif  // CATCHMENT_LANE_P4

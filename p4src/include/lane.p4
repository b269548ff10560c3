// One lane of every slot.  Set, add and read are one expression: see `slot_t`.
#ifndef CATCHMENT_LANE_P4
#define CATCHMENT_LANE_P4

control Lane(inout bit<32> value, in slot_t slot) {
    register<bit<32>>(SLOTS) sum;

    apply {
        bit<32> held;
        sum.read(held, slot.index);
        value = (held & slot.keep) + (value & slot.take);
        sum.write(slot.index, value);
    }
}

#endif  // CATCHMENT_LANE_P4

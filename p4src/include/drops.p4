// The only place where a frame is lost: counted under the reason that a control has left in `meta.drop`.
#ifndef CATCHMENT_DROPS_P4
#define CATCHMENT_DROPS_P4

// Index: DropReason.  One instance for both pipelines, so that an operator reads one table.
counter(32, CounterType.packets) drops;

control Drops(in metadata_t meta, inout standard_metadata_t standard_metadata) {
    apply {
        if (meta.drop != DropReason.NONE) {
            drops.count((bit<32>)(bit<8>)meta.drop);
            mark_to_drop(standard_metadata);
        }
    }
}

#endif  // CATCHMENT_DROPS_P4

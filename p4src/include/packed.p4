// Packed lanes: vectors whose lanes are two 16-bit integers each, in the streams that the control plane has named.
#ifndef CATCHMENT_PACKED_P4
#define CATCHMENT_PACKED_P4

// Only vectors with FLAG_PACKED ask the table: the others' lanes are one integer in every stream.
control Packed(in headers_t hdr, inout metadata_t meta) {
    @brief("add the halves of a lane without a carry between them")
    action halves() {
        meta.slot.tops = 32w0x80008000;
    }
    @brief("the stream has no packed lanes: NOT_PACKED")
    action refuse() {
        meta.drop = DropReason.NOT_PACKED;
    }
    @brief("streams whose vectors may have packed lanes")
    table packed {
        key = {
            hdr.catchment.gen : exact @name("gen") @brief("generation of the stream");
        }
        actions = { halves; refuse; }
        const default_action = refuse();
        size = 4096;
    }
    apply {
        meta.slot.tops = 0;
        if ((hdr.catchment.flags & FLAG_PACKED) != 0) {
            packed.apply();
        }
    }
}

#endif  // CATCHMENT_PACKED_P4

// Tags: who does not have a stream's key can neither make nor change a frame of it.  In a build with TAGS alone.
#ifndef CATCHMENT_TAGS_P4
#define CATCHMENT_TAGS_P4

// The tag of a frame under the key of its stream and its term: over our header, two bytes of zero, and the vector.
control Tag(in headers_t hdr, in metadata_t meta, out bit<64> tag) {
    SipBegin() begin;
    SipWord() first;
    SipWord() second;
    SipWord() third;
    LanesHash() vector;
    SipWord() last;
    SipEnd() end;

    apply {
        sip_t s;
        bit<64> bytes = 24;
        // A leaf writes its own number into the sums that it passes on; they are its parent's.
        bit<8> wid = hdr.catchment.wid;
        if (hdr.catchment.type == PacketType.FA) {
            wid = 0;
        }
        // A word without a vector is of the term that its acknowledgement is in.
        seq_t number = hdr.catchment.seq;
        if (hdr.catchment.type == PacketType.HB || hdr.catchment.type == PacketType.MH) {
            number = hdr.catchment.ack;
        }
        bit<64> k0 = meta.k0;
        bit<64> k1 = meta.k1;
        if ((number & meta.term_bit) != 0) {
            k0 = meta.odd_k0;
            k1 = meta.odd_k1;
        }
        begin.apply(k0, k1, s);
        first.apply(CATCHMENT_TAGGED_VERSION ++ (bit<4>)hdr.catchment.type ++ hdr.catchment.flags ++ hdr.catchment.gen
                        ++ wid ++ (bit<8>)hdr.catchment.dtype ++ hdr.catchment.lanes, s);
        second.apply((bit<8>)hdr.catchment.exp ++ (bit<8>)hdr.catchment.next_exp ++ hdr.catchment.seq
                         ++ hdr.catchment.ack[31:16], s);
        third.apply(hdr.catchment.ack[15:0] ++ hdr.catchment.credit ++ 16w0, s);
        if (hdr.lanes.isValid()) {
            vector.apply(hdr.lanes, s);
            bytes = 24 + LANES * 4;
        }
        last.apply(bytes << 56, s);
        end.apply(s, tag);
    }
}

// Parameters, and sums of a parent, go through as they are: their tags are the receivers' to check.
control CheckTag(in headers_t hdr, inout metadata_t meta, in port_t port) {
    Tag() tag;
    bit<1> has_key = 0;
    bit<8> sent_wid = 0;

    @brief("frames from this port carry tags under this key")
    action keyed(@brief("first half of the key, as a number of the first eight bytes, first byte lowest") bit<64> k0,
                 @brief("second half of the key") bit<64> k1,
                 @brief("the worker index that the frames must say: the member's own; 0 of a root") bit<8> wid) {
        meta.k0 = k0;
        meta.k1 = k1;
        meta.term_bit = 0;
        has_key = 1;
        sent_wid = wid;
    }
    @brief("frames from this port carry tags under one of two keys, by the term of their number")
    action termed(@brief("first half of the key of even terms, as in `keyed`") bit<64> k0,
                  @brief("second half") bit<64> k1,
                  @brief("first half of the key of odd terms") bit<64> odd_k0,
                  @brief("second half") bit<64> odd_k1,
                  @brief("the bit of a number that is 1 in odd terms") seq_t term_bit,
                  @brief("as in `keyed`") bit<8> wid) {
        meta.k0 = k0;
        meta.k1 = k1;
        meta.odd_k0 = odd_k0;
        meta.odd_k1 = odd_k1;
        meta.term_bit = term_bit;
        has_key = 1;
        sent_wid = wid;
    }
    @brief("streams whose frames carry tags, and their keys")
    table tags {
        key = {
            hdr.catchment.gen : exact @name("gen") @brief("generation of the stream");
            port : exact @name("port") @brief("port that the frame came in at");
        }
        actions = { keyed; termed; NoAction; }
        const default_action = NoAction();
        size = 4096;
    }
    apply {
        tags.apply();
        if (has_key == 1) {
            if (hdr.catchment.version != CATCHMENT_TAGGED_VERSION) {
                meta.drop = DropReason.BAD_TAG;
            } else if (hdr.tag.isValid()) {
                bit<64> right;
                tag.apply(hdr, meta, right);
                if (hdr.tag.tag != right || (meta.job.from_root == 0 && hdr.catchment.wid != sent_wid)) {
                    meta.drop = DropReason.BAD_TAG;
                }
            }
        } else if (hdr.catchment.version == CATCHMENT_TAGGED_VERSION) {
            meta.drop = DropReason.BAD_TAG;
        }
    }
}

// The frame leaves with another header, and a sum with another payload, than it came with.
control WriteTag(inout headers_t hdr, in metadata_t meta) {
    Tag() tag;

    apply {
        if (hdr.tag.isValid() && meta.route == Route.JOB) {
            bit<64> right;
            tag.apply(hdr, meta, right);
            hdr.tag.tag = right;
        }
    }
}

#endif  // CATCHMENT_TAGS_P4

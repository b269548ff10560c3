// select with values, masks, ranges, tuples and value sets; sub-parsers, lookahead, advance, verify, varbit, errors.
#include <core.p4>
#include <v1model.p4>

error { BadVersion }
header first_h { bit<8> a; bit<16> b; }
header mark_h { bit<8> where; }
header options_h { bit<8> length; varbit<64> data; }
header pair_h { bit<4> x; bit<4> y; }
struct headers_t { first_h first; mark_h mark; pair_h pair; options_h options; }
struct meta_t { bit<8> where; bit<16> ahead; }
#include "include/pipeline.p4"

parser Options(packet_in packet, out options_h options) {
    state start {
        transition select(packet.lookahead<bit<8>>()) {
            0 .. 8: read;
            default: reject;
        }
    }
    state read {
        packet.extract(options, (bit<32>) (packet.lookahead<bit<8>>() << 3));
        transition accept;
    }
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    value_set<bit<16>>(4) known;
    Options() options;

    state start {
        packet.extract(hdr.first);
        transition select(hdr.first.a, hdr.first.b) {
            (1, 0x1000 &&& 0xF000): masked;
            (2, 0x0010 .. 0x0020): ranged;
            (3, _): sets;
            (4, default): peek;
            (5, _): skip;
            (6, _): checked;
            (7, _): varying;
            (8, _): paired;
            (9, _): reject;
            default: accept;
        }
    }
    state masked { meta.where = 1; transition accept; }
    state ranged { meta.where = 2; transition accept; }
    state sets {
        transition select(hdr.first.b) {
            known: from_set;
            default: any;
        }
    }
    state from_set { meta.where = 3; transition accept; }
    state any { meta.where = 4; transition accept; }
    state peek { meta.ahead = packet.lookahead<bit<16>>(); meta.where = 5; transition accept; }
    state skip { packet.advance(16); meta.where = 6; transition accept; }
    state checked {
        verify(hdr.first.b != 0xBAD0, error.BadVersion);
        meta.where = 7;
        transition accept;
    }
    state varying {
        options.apply(packet, hdr.options);
        meta.where = 8;
        transition accept;
    }
    state paired {
        packet.extract(hdr.pair);
        transition select(hdr.pair.x ++ hdr.pair.y) {
            0x12: low;
            0x34 &&& 0xF0: high;
        }
    }
    state low { meta.where = 9; transition accept; }
    state high { meta.where = 10; transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        hdr.mark.setValid();
        hdr.mark.where = meta.where;
        if (meta.where == 5) {
            hdr.first.b = meta.ahead;
        }
        if (sm.parser_error == error.BadVersion) {
            hdr.mark.where = 0xF1;
        } else if (sm.parser_error == error.PacketTooShort) {
            hdr.mark.where = 0xF2;
        } else if (sm.parser_error == error.NoMatch) {
            hdr.mark.where = 0xF3;
        } else if (sm.parser_error == error.HeaderTooShort) {
            hdr.mark.where = 0xF4;
        } else if (sm.parser_error != error.NoError) {
            hdr.mark.where = 0xFF;
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

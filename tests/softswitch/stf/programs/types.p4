// typedef, type, enums with and without values, error, bool, tuples, nested structs.
#include <core.p4>
#include <v1model.p4>

error { OddTag }
typedef bit<8> tag_t;
type bit<16> count_t;
enum Mode { plain, doubled, dropped }
enum bit<8> Kind { request = 1, reply = 2, other = 0xFF }

header main_h {
    Kind kind;
    tag_t tag;
    bool flag;
    bit<7> rest;
    bit<16> value;
    bit<8> seen;
}
struct inner_t { bit<4> low; bit<4> high; }
struct outer_t { inner_t inner; tuple<bit<8>, bool> pair; Mode mode; }
struct headers_t { main_h main; }
struct meta_t { outer_t outer; count_t count; error last; }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.main);
        meta.last = error.NoError;
        transition select(hdr.main.tag) {
            0xEE: odd;
            default: accept;
        }
    }
    state odd {
        meta.last = error.OddTag;
        transition accept;
    }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        meta.outer.inner = { hdr.main.tag[3:0], hdr.main.tag[7:4] };
        meta.outer.pair = { hdr.main.tag, hdr.main.flag };
        meta.count = (count_t) hdr.main.value;
        meta.outer.mode = Mode.plain;
        if (hdr.main.kind == Kind.request) {
            meta.outer.mode = Mode.doubled;
        } else if (hdr.main.kind == Kind.other) {
            meta.outer.mode = Mode.dropped;
        }
        if (meta.outer.mode == Mode.doubled) {
            meta.count = (count_t) ((bit<16>) meta.count + (bit<16>) meta.count);
            hdr.main.kind = Kind.reply;
        } else if (meta.outer.mode == Mode.dropped) {
            mark_to_drop(sm);
        }
        if (meta.outer.pair[1] && meta.outer.inner.low == 5) {
            hdr.main.flag = !hdr.main.flag;
            hdr.main.rest = (bit<7>) (meta.outer.inner.high ++ meta.outer.inner.low)[6:0];
        }
        hdr.main.value = (bit<16>) meta.count;
        if (meta.last == error.OddTag) {
            hdr.main.seen = (bit<8>) Kind.reply + 0x40;
        } else if (sm.parser_error == error.NoError) {
            hdr.main.seen = 1;
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

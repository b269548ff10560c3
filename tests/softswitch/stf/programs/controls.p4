// Sub-controls with constructor parameters, actions with directions, functions, generics, exit and return.
#include <core.p4>
#include <v1model.p4>

header work_h { bit<8> op; bit<8> a; bit<8> b; bit<16> c; }
struct headers_t { work_h work; }
struct meta_t { bit<8> trace; }
struct pair_t<T> { T first; T second; }
#include "include/pipeline.p4"

bit<8> highest(in bit<8> x, in bit<8> y) {
    if (x > y) {
        return x;
    }
    return y;
}

void swap<T>(inout T x, inout T y) {
    T kept = x;
    x = y;
    y = kept;
}

bit<8> count_up(inout bit<8> x) {
    x = x + 1;
    return x;
}

action blend(in bit<8> x, inout bit<8> y, out bit<8> z) {
    z = x ^ y;
    y = y + x;
}

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.work);
        transition accept;
    }
}

control Add(inout bit<8> value)(bit<8> step, bool twice) {
    action once() { value = value + step; }
    apply {
        once();
        if (twice) {
            once();
        }
    }
}

control Early(inout headers_t hdr) {
    apply {
        if (hdr.work.a == 0) {
            return;
        }
        hdr.work.b = 0xE1;
        if (hdr.work.a == 1) {
            exit;
        }
        hdr.work.b = 0xE2;
    }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    Add(5, false) five;
    Add(10, true) twenty;
    Early() early;
    action out_of_action(bit<8> limit) {
        if (hdr.work.a > limit) {
            hdr.work.c = 0xDEAD;
            exit;
        }
        hdr.work.c = 0xBEEF;
    }
    table choose {
        key = { hdr.work.b : exact; }
        actions = { out_of_action; NoAction; }
        const entries = { 7 : out_of_action(100); }
        default_action = NoAction();
    }
    apply {
        sm.egress_spec = 1;
        if (hdr.work.op == 1) {
            hdr.work.c[7:0] = highest(hdr.work.a, hdr.work.b);
        } else if (hdr.work.op == 2) {
            swap(hdr.work.a, hdr.work.b);
        } else if (hdr.work.op == 3) {
            five.apply(hdr.work.a);
            twenty.apply(hdr.work.b);
        } else if (hdr.work.op == 4) {
            blend(hdr.work.a, hdr.work.b, hdr.work.c[7:0]);
        } else if (hdr.work.op == 5) {
            early.apply(hdr);
            hdr.work.c = 0xCCCC;
        } else if (hdr.work.op == 6) {
            choose.apply();
            hdr.work.c = hdr.work.c + 1;
        } else if (hdr.work.op == 7) {
            // left to right, and not at all where it is decided
            if (count_up(hdr.work.a) == 3 && count_up(hdr.work.b) == 3) {
                hdr.work.c = 1;
            }
        } else if (hdr.work.op == 8) {
            pair_t<bit<8>> p = { first = hdr.work.a, second = hdr.work.b };
            pair_t<bit<16>> q = { 3, 4 };
            swap(p.first, p.second);
            hdr.work.c = (p.first ++ p.second) + q.second;
        } else if (hdr.work.op == 9) {
            hdr.work.a = count_up(hdr.work.a) + hdr.work.a;
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

// bit<> and int<> of any width: wrap, saturation, shifts, slices and concatenation on both sides, casts, constants.
#include <core.p4>
#include <v1model.p4>

const int HUGE = 1 << 200;
const bit<16> FOLDED = (bit<16>) ((HUGE * HUGE - 1) / (HUGE + 1) % 0x1_0001);
const bit<8> MIXED = 8w10 * 3 |+| 8w250;

header small_h { bit<8> op; bit<8> a; bit<8> b; int<8> c; int<8> d; bit<16> e; }
header wide_h { bit<130> x; bit<126> y; }
header huge_h { bit<2048> z; }
struct headers_t { small_h small; wide_h wide; huge_h huge; }
struct meta_t { bit<1030> big; int<77> odd; }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.small);
        transition select(hdr.small.op) {
            0x80 &&& 0xC0: wide;
            0xC0 &&& 0xC0: huge;
            default: accept;
        }
    }
    state wide { packet.extract(hdr.wide); transition accept; }
    state huge { packet.extract(hdr.huge); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        bit<8> a = hdr.small.a;
        bit<8> b = hdr.small.b;
        int<8> c = hdr.small.c;
        int<8> d = hdr.small.d;
        switch (hdr.small.op) {
            1: { hdr.small.e = (a + b) ++ (a - b); }
            2: { hdr.small.e = (a |+| b) ++ (a |-| b); }
            3: { hdr.small.c = c |+| d; hdr.small.d = c |-| d; }
            4: { hdr.small.e = (a * b) ++ (a & b); hdr.small.a = a | b; hdr.small.b = a ^ b; }
            5: { hdr.small.e = (a << b) ++ (a >> b); hdr.small.c = c >> b; hdr.small.d = d << b; }
            6: { hdr.small.e[11:4] = a; hdr.small.a = hdr.small.e[15:8]; hdr.small.b = ~b; }
            7: { hdr.small.e = (bit<16>) a; hdr.small.a = (bit<8>) c; hdr.small.c = (int<8>) a; }
            8: { hdr.small.e = (bit<16>) (int<16>) c; hdr.small.d = -d; hdr.small.b = -b; }
            9: { hdr.small.e = FOLDED; hdr.small.a = MIXED; hdr.small.b = a / 8; }
            10: { hdr.small.e = (c < d ? 8w1 : 2) ++ (a < b ? 8w3 : 4); hdr.small.a = a % 16; }
            11: { int<16> w = (int<16>) c * (int<16>) d; hdr.small.e = (bit<16>) w; }
            12: { hdr.small.e = (c >= 0 && d <= -1) ? 16w0xAAAA : 16w0x5555; }
        }
        if (hdr.wide.isValid()) {
            if (hdr.small.op == 0x81) {
                hdr.wide.x = hdr.wide.x + 1;
                hdr.wide.y = hdr.wide.y - 1;
            } else if (hdr.small.op == 0x82) {
                bit<256> both = hdr.wide.x ++ hdr.wide.y;
                both = both << a;
                hdr.wide.x = both[255:126];
                hdr.wide.y = both[125:0];
            } else if (hdr.small.op == 0x83) {
                hdr.wide.x = hdr.wide.x * (bit<130>) hdr.wide.y;
            } else if (hdr.small.op == 0x84) {
                hdr.wide.y[100:37] = hdr.wide.x[129:66];
                meta.odd = (int<77>) hdr.wide.x[76:0];
                hdr.wide.x = (bit<130>) (int<130>) (meta.odd >> 3);
            } else if (hdr.small.op == 0x85) {
                hdr.wide.x = hdr.wide.x |+| (1 << 129);
                hdr.wide.y = hdr.wide.y |-| 5;
            }
        }
        if (hdr.huge.isValid()) {
            meta.big = hdr.huge.z[2047:1018] ^ hdr.huge.z[1029:0];
            hdr.huge.z = (hdr.huge.z >> 250) + (bit<2048>) meta.big;
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

// switch on action_run and on values, hit and miss, default labels, tables in conditions and keys.
#include <core.p4>
#include <v1model.p4>

enum bit<8> Color { red = 1, green = 2, blue = 4 }
header h_h { bit<8> key; Color color; bit<8> out1; bit<8> out2; int<8> sign; }
struct headers_t { h_h h; }
struct meta_t { }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    action first() { hdr.h.out1 = 1; }
    action second(bit<8> value) { hdr.h.out1 = value; }
    action third() { }
    table choose {
        key = { hdr.h.key : exact; }
        actions = { first; second; third; NoAction; }
        default_action = NoAction();
    }
    table known {
        key = { hdr.h.key : exact; }
        actions = { NoAction; }
        const entries = { 1 : NoAction(); 2 : NoAction(); }
        const default_action = NoAction();
    }
    table never {
        actions = { third; }
        const default_action = third();
    }
    apply {
        sm.egress_spec = 1;
        switch (choose.apply().action_run) {
            first: { hdr.h.out2 = 0x10; }
            second:
            third: { hdr.h.out2 = 0x23; }
            default: { hdr.h.out2 = 0xDD; }
        }
        if (known.apply().hit) {
            hdr.h.out1 = hdr.h.out1 + 0x80;
        } else {
            hdr.h.out1 = hdr.h.out1 + 0x40;
        }
        if (!never.apply().miss) {
            hdr.h.out2 = 0xFF;
        }
        switch (hdr.h.color) {
            Color.red: { hdr.h.color = Color.green; }
            Color.green:
            Color.blue: { hdr.h.color = Color.red; }
        }
        switch (hdr.h.sign) {
            7: { hdr.h.sign = -1; }
            0: { }
            default: { hdr.h.sign = -2; }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

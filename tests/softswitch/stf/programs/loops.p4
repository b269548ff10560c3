// for loops over ranges, lists, stacks and register cells, with break and continue; arrays; registers and stacks outside
// their size. Runs here only: p4c's back end takes no for-in, and BMv2 ends at such an index.
#include <core.p4>
#include <v1model.p4>

header f_h { bit<8> op; bit<8> n; bit<16> sum; }
header item_h { bit<8> x; }
struct headers_t { f_h f; item_h[3] items; }
struct meta_t { }
#include "include/pipeline.p4"

const list<bit<8>> PRIMES = { 2, 3, 5, 7 };

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start {
        packet.extract(hdr.f);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        packet.extract(hdr.items.next);
        transition accept;
    }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    bit<8>[4] kept;
    register<bit<16>>(8) cells;
    apply {
        sm.egress_spec = 1;
        switch (hdr.f.op) {
            1: {
                for (bit<8> i in 1 .. hdr.f.n) {
                    hdr.f.sum = hdr.f.sum + (bit<16>) i;
                }
            }
            2: {
                for (bit<8> p in PRIMES) {
                    if (p == hdr.f.n) {
                        continue;
                    }
                    hdr.f.sum = hdr.f.sum + (bit<16>) p;
                }
            }
            3: {
                for (item_h item in hdr.items) {
                    if (item.x == 0) {
                        break;
                    }
                    hdr.f.sum = hdr.f.sum + (bit<16>) item.x;
                }
            }
            4: {
                for (bit<8> i in 0 .. 3) {
                    kept[i] = i * i;
                }
                hdr.f.sum = (bit<16>) kept[hdr.f.n];
            }
            7: { cells.write(9, 7); cells.read(hdr.f.sum, 9); hdr.items[hdr.f.n].x = 1; }
            6: {
                for (bit<32> i = 0; i < 8; i = i + 1) {
                    bit<16> cell;
                    cells.read(cell, i);
                    if (cell == 0) {
                        continue;
                    }
                    if (cell == 0xFFFF) {
                        break;
                    }
                    hdr.f.sum = hdr.f.sum + cell;
                }
            }
            5: {
                for (bit<8> i in 254 .. 255) {
                    for (bit<8> k in 5 .. 2) {
                        hdr.f.sum = 0xDEAD;
                    }
                    hdr.f.sum = hdr.f.sum + 1;
                }
            }
        }
    }
}

V1Switch(Parse(), NoVerify(), Work(), NoEgress(), NoUpdate(), Emit()) main;

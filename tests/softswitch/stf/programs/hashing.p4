// hash() with every algorithm, over structs and lists; checksums verified and updated, with and without the payload.
#include <core.p4>
#include <v1model.p4>

header h_h { bit<8> algorithm; bit<8> a; bit<16> b; bit<32> c; bit<16> sum; bit<32> result; }
struct headers_t { h_h h; }
struct meta_t { }
#include "include/pipeline.p4"

parser Parse(packet_in packet, out headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    state start { packet.extract(hdr.h); transition accept; }
}

control Verify(inout headers_t hdr, inout meta_t meta) {
    apply {
        verify_checksum(hdr.h.algorithm == 0x10, { hdr.h.a, 8w0, hdr.h.b, hdr.h.c }, hdr.h.sum, HashAlgorithm.csum16);
        verify_checksum_with_payload(hdr.h.algorithm == 0x11, { hdr.h.a, hdr.h.b }, hdr.h.sum, HashAlgorithm.csum16);
    }
}

control Work(inout headers_t hdr, inout meta_t meta, inout standard_metadata_t sm) {
    apply {
        sm.egress_spec = 1;
        switch (hdr.h.algorithm) {
            1: { hash(hdr.h.result, HashAlgorithm.crc32, 32w0, { hdr.h.a, hdr.h.b, hdr.h.c }, 64w0x100000000); }
            2: { hash(hdr.h.result, HashAlgorithm.crc16, 16w5, { hdr.h.a, hdr.h.b }, 32w1000); }
            3: { hash(hdr.h.result, HashAlgorithm.csum16, 32w0, { hdr.h.b, hdr.h.c }, 32w0x10000); }
            4: { hash(hdr.h.result, HashAlgorithm.xor16, 32w0, { hdr.h.b, hdr.h.c }, 32w0x10000); }
            5: { hash(hdr.h.result, HashAlgorithm.identity, 32w0, { hdr.h.b, hdr.h.a }, 32w0x10000); }
            6: { hash(hdr.h.result, HashAlgorithm.crc32_custom, 32w0, { hdr.h.c }, 64w0x100000000); }
            7: { hash(hdr.h.result, HashAlgorithm.crc16_custom, 32w0, { hdr.h.c }, 32w0x10000); }
            8: { hash(hdr.h.result, HashAlgorithm.crc32, 32w7, { hdr.h.a[3:0], 4w9, hdr.h.c }, 32w1); }
            0x10: { hdr.h.result = (bit<32>) sm.checksum_error; }
            0x11: { hdr.h.result = (bit<32>) sm.checksum_error; }
        }
    }
}

control Update(inout headers_t hdr, inout meta_t meta) {
    apply {
        update_checksum(hdr.h.algorithm == 0x20, { hdr.h.a, 8w0, hdr.h.b, hdr.h.c }, hdr.h.sum, HashAlgorithm.csum16);
        update_checksum_with_payload(hdr.h.algorithm == 0x21, { hdr.h.a, hdr.h.b }, hdr.h.sum, HashAlgorithm.csum16);
        update_checksum(hdr.h.algorithm == 0x22, { hdr.h.c }, hdr.h.result, HashAlgorithm.crc32);
    }
}

V1Switch(Parse(), Verify(), Work(), NoEgress(), Update(), Emit()) main;
